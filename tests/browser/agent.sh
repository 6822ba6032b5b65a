#!/bin/sh
# A scripted agent for the page's tests and pictures: RTF1 on stdout, a little work in the directory.
r() { printf '@@RALPH@@ %s\n' "$1"; }
usage() { r '{"type":"usage","usage":{"prompt_tokens":'"$1"',"completion_tokens":'"$2"',"model":"opus-5","cost_usd":'"$3"'}}'; }
plan() { r '{"type":"meta","meta":{"kind":"todo","items":[{"text":"Reproduce the failing test","status":"done"},{"text":"Parse quoted fields","status":"'"$1"'"},{"text":"Handle CRLF line ends","status":"'"$2"'"},{"text":"Document the format","status":"pending"}]}}'; }
cat > /dev/null
case "$RALPH_ITERATION" in
1)
  plan in_progress pending
  r '{"type":"text","tag":"THINK","text":"The test expects quotes to survive. Let me look at the reader first."}'
  r '{"type":"text","tag":"AI","text":"I will reproduce the failure first, then read `src/csv.rs`."}'
  r '{"type":"tool_start","tool":{"id":"t1","name":"Bash","input":{"command":"cargo test csv"}}}'
  r '{"type":"tool_start","tool":{"id":"t2","name":"Read","input":{"file_path":"src/csv.rs"}}}'
  r '{"type":"tool_output","tool":{"id":"t2"},"text":"pub fn split(line: &str) -> Vec<&str> {\n    line.split(\u0027,\u0027).collect()\n}"}'
  r '{"type":"tool_output","tool":{"id":"t1"},"text":"running 4 tests\ntest csv::plain ... ok\ntest csv::quoted ... FAILED"}'
  r '{"type":"tool_end","tool":{"id":"t2","status":"ok","duration_ms":35}}'
  r '{"type":"tool_end","tool":{"id":"t1","status":"fail","duration_ms":4210}}'
  mkdir -p src && printf 'pub fn split(line: &str) -> Vec<String> {\n    let mut fields = vec![String::new()];\n    fields\n}\n' > src/csv.rs
  r '{"type":"tool_start","tool":{"id":"t3","name":"Edit","input":{"file_path":"src/csv.rs","old_string":"    line.split(\u0027,\u0027).collect()","new_string":"    let mut fields = vec![String::new()];\n    let mut quoted = false;\n    fields"}}}'
  r '{"type":"tool_end","tool":{"id":"t3","status":"ok","duration_ms":12}}'
  r '{"type":"text","tag":"AI","text":"Quoted fields work now.\n\n<promise>COMPLETE</promise>"}'
  usage 18200 940 0.21 ;;
2)
  plan done in_progress
  r '{"type":"text","tag":"AI","text":"The check failed: **line ends**. Two things are left:\n\n1. `\\r\\n` must end a record\n2. the README has no word about it\n\n| input | fields |\n|---|---|\n| `a,\"b,c\"` | 2 |\n| `a,b\\r\\n` | 2 |"}'
  r '{"type":"tool_start","tool":{"id":"u1","name":"Bash","input":{"command":"cargo test csv -- --nocapture"}}}'
  r '{"type":"tool_output","tool":{"id":"u1"},"text":"test result: ok. 4 passed"}'
  r '{"type":"tool_end","tool":{"id":"u1","status":"ok","duration_ms":3907}}'
  printf '# CSV\n\nFields in quotes may contain commas.\n' > README.md; touch done
  [ -z "$SLOW" ] || { r '{"type":"tool_start","tool":{"id":"u2","name":"Bash","input":{"command":"cargo test --workspace"}}}'; n=0; while [ $n -lt "${SLOW}0" ] && [ ! -e ../go ]; do sleep 0.1; n=$((n + 1)); done; r '{"type":"tool_end","tool":{"id":"u2","status":"ok"}}'; }
  r '{"type":"text","tag":"AI","text":"'"${SAYS:-Line ends are handled.}"'"}'
  usage 24100 1310 0.29 ;;
*)
  plan done done
  r '{"type":"text","tag":"AI","text":"Everything is done.\n\n<promise>COMPLETE</promise>"}'
  usage 12000 300 0.12 ;;
esac

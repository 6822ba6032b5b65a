
# Ids of the runs of this directory.
complete -c ralph -n "__fish_seen_subcommand_from @COMMANDS@" -f -k -a "(ralph runs --ids 2>/dev/null)"

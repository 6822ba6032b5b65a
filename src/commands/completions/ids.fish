
# Ids of the runs of this directory, for the first word behind the command.
complete -c ralph -n "__fish_seen_subcommand_from @COMMANDS@; and test (count (commandline -opc)) -eq 2" -k -a "(ralph runs --ids 2>/dev/null)"

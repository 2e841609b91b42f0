# A message was moved or copied out of Junk. Who throws it away says nothing about it, and who
# sorts Junk into folders of its own says nothing new. Local names belong into this list.
require ["copy", "environment", "imapsieve", "special-use", "variables", "vnd.dovecot.pipe"];

if environment :matches "imap.mailbox" ["*Trash", "*Deleted Items", "*Deleted Messages", "Junk.*", "Junk/*"] {
  stop;
}
if environment :matches "imap.mailbox" "*" {
  if specialuse_exists "${1}" "\\Trash" {
    stop;
  }
}
pipe :copy :try "hamlet-learn" ["--ham"];

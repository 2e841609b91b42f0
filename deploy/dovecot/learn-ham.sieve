# A message was moved or copied out of Junk. Who throws it away says nothing about it.
require ["copy", "environment", "imapsieve", "vnd.dovecot.pipe"];

if environment :is "imap.mailbox" ["Trash", "Deleted Items", "Deleted Messages"] {
  stop;
}
pipe :copy :try "hamlet-learn" ["--ham"];

# A message was moved or copied into Junk.
require ["copy", "vnd.dovecot.pipe"];

pipe :copy :try "hamlet-learn" ["--spam"];

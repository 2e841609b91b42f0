# Dovecot's Sieve marks each message with hamlet-filter and files spam. Dovecot needs
# the settings of dovecot-sieve.conf.
require ["vnd.dovecot.filter", "fileinto"];

# If the program fails, Sieve goes on with the message as it was. Dovecot passes no
# environment on, so the address of another socket is an argument:
# filter "hamlet-filter" ["--socket", "unix:/run/hamlet/spamd.sock"];
filter "hamlet-filter";

# The first word of X-Hamlet is the verdict: spam, ham or unsure.
if header :matches "X-Hamlet" "spam;*" {
  fileinto "Junk";
}

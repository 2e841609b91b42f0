# Dovecot's Sieve marks each message with spamc and files spam. Dovecot needs the settings
# of dovecot-sieve.conf, and spamc those of spamc.conf.
require ["vnd.dovecot.filter", "fileinto"];

# If the program fails, Sieve goes on with the message as it was. What else spamc is to
# know is an argument, such as whose mail it is: filter "spamc" ["-u", "alice"];
filter "spamc";

# The first word of X-Hamlet is the verdict: spam, ham or unsure.
if header :matches "X-Hamlet" "spam;*" {
  fileinto "Junk";
}

# Makes v0.1.0.tar: sh v0.1.0.sh HAMLET SMSSpamCollection, with hamlet built at 44becbfa, which is release 0.1.0.
set -e
hamlet=$1 sms=$2
head -60 "$sms" >part.txt
export XDG_RUNTIME_DIR=$PWD/run
mkdir -p run && chmod 700 run
flags="--data D --table-bits 8 --experts lean --listen-nats 127.0.0.1:0 --log-level warn"
$hamlet up $flags --once --format text part.txt >/dev/null
$hamlet up $flags --http 127.0.0.1:18099 --token secret &
up=$!
until curl -fs -o /dev/null 127.0.0.1:18099/readyz; do sleep .1; done
eval "$($hamlet env)"
$hamlet model export default v0.1.0.tar # prints the SHA-256 that onefile_test.go has
kill $up
wait $up || true

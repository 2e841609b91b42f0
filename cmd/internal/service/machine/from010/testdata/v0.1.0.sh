# Makes v0.1.0.tar.gz: sh v0.1.0.sh HAMLET SMSSpamCollection kill, with hamlet built at 0b917fe, and then
#   tar --sort=name --owner=0 --group=0 -C D -cf - .lock kafka redis | gzip -9n >v0.1.0.tar.gz
# It prints the versions with their model_sha256, which from010_test.go has.
set -e
hamlet=$1 sms=$2
flags="--data D --table-bits 8 --experts lean --keep-versions 5 --listen-nats 127.0.0.1:0 --log-level warn"
rm -rf D
for i in 1 2; do
  sed -n "$(((i-1)*20+1)),$((i*20))p" "$sms" >part.txt
  $hamlet up $flags --once --format text part.txt >/dev/null 2>&1
done
head -5 part.txt >small.txt
$hamlet up $flags --model small --once --format text small.txt >/dev/null 2>&1
export XDG_RUNTIME_DIR=$PWD/run
mkdir -p run && chmod 700 run
$hamlet up $flags --http 127.0.0.1:18099 --token secret >/dev/null 2>&1 &
up=$!
until curl -fs -o /dev/null 127.0.0.1:18099/readyz; do sleep .1; done
eval "$($hamlet env)"
$hamlet model pin 1
label() { curl -fsS -H "Authorization: Bearer secret" -H "Content-Type: application/json" -d "$1" 127.0.0.1:18099/v1/events; }
label '{"id":"a","source":"s","action":"learn","label":"spam","text":"free prize"}'
label '{"id":"b","source":"s","action":"unlearn","of":"nothing","label":"spam","text":"x"}' || true
sleep 5
$hamlet model versions --json
if [ "$3" = kill ]; then kill -9 $up; else kill $up; fi
wait $up || true

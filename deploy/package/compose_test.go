package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A kafkaStart does with the environment what the start of apache/kafka does: KAFKA_A_B=c is a.b=c.
const kafkaStart = `#!/bin/sh
set -e
env | sed -n 's/^KAFKA_//p' | while IFS= read -r line; do
  printf '%s=%s\n' "$(printf %s "${line%%=*}" | tr A-Z_ a-z.)" "${line#*=}"
done >/tmp/server.properties
export CLASSPATH='/opt/kafka/*'
/usr/bin/java kafka.tools.StorageTool format --ignore-formatted -t MkU3OEVBNTcwNTJENDM2Qk -c /tmp/server.properties
exec /usr/bin/java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 kafka.Kafka /tmp/server.properties
`

// library finds the files that ldd names.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// programTree makes a folder of programs of this machine with the libraries that they load.
func programTree(t *testing.T, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	if err := errors.Join(os.Chmod(root, 0o755), os.Mkdir(root+"/tmp", 0o777), os.Chmod(root+"/tmp", 0o1777)); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("an image needs %v", err)
		}
		copyInto(t, path, root+"/usr/bin/"+filepath.Base(path))
		libraries(t, root, path)
	}
	return root
}

// libraries copies what a program loads.
func libraries(t *testing.T, root, program string) {
	t.Helper()
	out, _ := exec.Command("ldd", program).Output() // it fails if the program is static
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		if path := m[1]; !strings.HasPrefix(path, "/usr/lib/jvm/") {
			copyInto(t, path, root+path)
		}
	}
}

func copyInto(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "cp", "-L", from, to)
}

// composeImages makes the images that compose.yaml names: hamlet's own, and under the names of the
// servers Debian's Redis, Kafka from Maven and NATS from the module proxy, as deploy/servers has them.
func (d *docker) composeImages() {
	t := d.t
	t.Helper()
	fetched := map[string]string{}
	out, err := exec.CommandContext(t.Context(), "../servers", "fetch").Output()
	if err != nil {
		t.Skipf("deploy/servers fetch: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fetched[key] = value
	}
	d.importTree(programTree(t, "redis-server"), "redis:8", "WORKDIR /data")
	nats := fetched["NATS_SERVER"]
	d.importTree(programTree(t, nats), "nats:2.12", `ENTRYPOINT ["/usr/bin/`+filepath.Base(nats)+`"]`)

	kafka := programTree(t, "sh", "env", "sed", "tr")
	java, err := exec.LookPath("java")
	if err == nil {
		java, err = filepath.EvalSymlinks(java)
	}
	if err != nil {
		t.Skipf("Kafka needs openjdk-17-jre-headless: %v", err)
	}
	home := filepath.Dir(filepath.Dir(java))
	command(t, "mkdir", "-p", kafka+home, kafka+"/bin", kafka+"/opt", kafka+"/etc")
	command(t, "cp", "-a", home+"/lib", home+"/conf", home+"/bin", kafka+home)
	if folders, _ := filepath.Glob("/etc/java-*"); len(folders) > 0 { // Debian's links lead there
		command(t, "cp", append(append([]string{"-a"}, folders...), kafka+"/etc")...)
	}
	command(t, "cp", "-a", fetched["KAFKA_JARS"], kafka+"/opt/kafka")
	if err := filepath.WalkDir(home+"/lib", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".so") {
			libraries(t, kafka, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	libraries(t, kafka, java)
	// The codecs in Kafka's jars were linked with these, which Debian 12 has for old programs alone.
	for _, pattern := range []string{"libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6"} {
		found, _ := filepath.Glob("/lib/*-linux-gnu/" + pattern)
		for _, path := range found {
			copyInto(t, path, kafka+path)
		}
	}
	if err := errors.Join(os.Symlink("/usr/bin/sh", kafka+"/bin/sh"), os.Symlink(java, kafka+"/usr/bin/java"),
		os.WriteFile(kafka+"/usr/bin/start", []byte(kafkaStart), 0o755)); err != nil {
		t.Fatal(err)
	}
	d.importTree(kafka, "apache/kafka:4.1.0", `ENTRYPOINT ["/usr/bin/start"]`, "ENV PATH=/usr/bin")

	_, image := indexOf(t)
	tag, err := name.NewTag("hamlet:" + release.Version)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hamlet.tar")
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		t.Fatal(err)
	}
	d.run("load", "-i", file)
}

// A composed is the services of compose.yaml.
type composed struct {
	t    *testing.T
	d    *docker
	file string
}

// compose runs docker compose, or docker-compose of Debian 12, which does not know "name:".
func (c *composed) compose(args ...string) string {
	c.t.Helper()
	program := []string{"docker-compose"}
	if exec.Command("docker", "compose", "version").Run() == nil {
		program = []string{"docker", "compose"}
	}
	args = append(append(program, "-p", "hamlet", "-f", c.file), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+c.d.dir+"/sock", "HAMLET_TOKEN=secret")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// eventually tries again until there is no error.
func (c *composed) eventually(what string, try func() error) {
	c.t.Helper()
	for end := time.Now().Add(4 * patience); ; {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: %v\n%s\n%s", what, err, c.compose("ps"), c.compose("logs", "--tail=30"))
		}
		<-time.After(200 * time.Millisecond)
	}
}

const composeDoor = "http://127.0.0.1:9104"

// teach has one label acknowledged.
func (c *composed) teach(n int) {
	c.t.Helper()
	c.eventually(fmt.Sprint("label ", n), func() error {
		label, text := "spam", "win a prize now"
		if n%2 == 0 {
			label, text = "ham", "lunch on friday"
		}
		event := fmt.Sprintf(`{"id":"%d","source":"desk","label":%q,"text":"%s %[1]d"}`, n, label, text)
		_, err := ask(c.t, composeDoor+"/v1/events", "application/json", "secret", event)
		return err
	})
}

// scored waits for an answer by a model that has learnt the labels. A label whose answer was lost
// is sent again, and takes a place in the log, so there may be more.
func (c *composed) scored(events int) (sum string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("a score by a model of %d events", events), func() error {
		a, err := ask(c.t, composeDoor+"/v1/score", "text/plain", "secret", "win a prize")
		if err == nil {
			have := 0
			for _, n := range a.Model.Positions {
				have += n
			}
			if have < events {
				err = fmt.Errorf("it has learnt %d", have)
			}
			sum = a.Model.SHA256
		}
		return err
	})
	return sum
}

// up waits until each service runs, and says how long it took.
func (c *composed) up(events int) {
	c.t.Helper()
	began := time.Now()
	c.compose("up", "-d")
	c.eventually("the gateway", func() error {
		response, err := http.Get(composeDoor + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK && events > 0 {
			return errors.New(response.Status)
		}
		return nil
	})
	c.t.Logf("up -d and the gateway's answer took %v", time.Since(began).Round(100*time.Millisecond))
}

// docker compose up of compose.yaml: labels reach the learner, scores come from its model. Each
// service in turn is killed and comes back by itself. What was learnt outlives compose down.
func TestComposeRuns(t *testing.T) {
	d := newDocker(t)
	if _, err := exec.LookPath("docker-compose"); err != nil && exec.Command("docker", "compose", "version").Run() != nil {
		t.Skip("compose is missing: apt-get install docker-compose")
	}
	for _, port := range []string{"9104", "1783", "11332"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatalf("compose.yaml uses port %s, which is taken: %v", port, err)
		}
		l.Close()
	}
	began := time.Now()
	d.composeImages()
	t.Logf("the images took %v", time.Since(began).Round(time.Second))
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &composed{t, d, filepath.Join(t.TempDir(), "compose.yaml")}
	if err := os.WriteFile(c.file, []byte(strings.Replace(string(text), "\nname: hamlet\n", "\n", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.compose("down", "-t", "10") })
	c.up(0)
	events := 0
	for range 10 {
		events++
		c.teach(events)
	}
	c.scored(events)
	for _, service := range []string{"learner", "scorer", "gateway", "nats", "redis", "kafka"} {
		id := strings.TrimSpace(c.compose("ps", "-q", service))
		pid := func() (n int) {
			_, _ = fmt.Sscan(d.try("inspect", "-f", "{{.State.Pid}}", id), &n)
			return n
		}
		before := pid()
		// Not docker kill: dockerd takes that for the operator's wish, and starts nothing again.
		if before == 0 || syscall.Kill(before, syscall.SIGKILL) != nil {
			t.Fatalf("%s does not run:\n%s", service, c.compose("logs", "--tail=30", service))
		}
		began := time.Now()
		events++
		c.teach(events)
		c.scored(events)
		c.eventually(service, func() error {
			if now := pid(); now == 0 || now == before {
				return errors.New("it is not started again")
			}
			return nil
		})
		took := time.Since(began).Round(100 * time.Millisecond)
		t.Logf("%s was killed: labels and answers came again after %v", service, took)
	}
	sum := c.scored(events)
	c.compose("down")
	c.up(events)
	if again := c.scored(events); again != sum {
		t.Errorf("after down and up the model is %s, it was %s", again, sum)
	}
	events++
	c.teach(events)
	c.scored(events)
}

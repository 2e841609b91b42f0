package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// builtOld is HAMLET_OLD, a folder with the programs of 0.1.0. It is read before TestMain removes it.
var builtOld = os.Getenv("HAMLET_OLD")

// release010 is the commit of hamlet 0.1.0.
const release010 = "0b917fe"

// programs010 returns a folder with learner and scorer of 0.1.0.
func programs010(t *testing.T) string {
	t.Helper()
	if builtOld != "" {
		return builtOld
	}
	if !nightly {
		t.Skip("programs of 0.1.0: HAMLET_NIGHTLY=1 builds them, HAMLET_OLD=DIR has them")
	}
	folder := t.TempDir()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		fmt.Sprintf("git -C %q archive %s | tar -x -C %q", root, release010, folder),
		fmt.Sprintf("cd %q && go build -o . ./cmd/learner ./cmd/scorer", folder),
	} {
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	return folder
}

// A rolling change from 0.1.0, with requests and labels flowing: two learners and two scorers are
// replaced one after the other. No request and no event is lost, the model is that of the log, and
// the model changes hands once. That waits until 0.1.0 has saved nothing for a minute.
func TestRollingChangeFrom010(t *testing.T) {
	old := programs010(t)
	for _, order := range []string{"learners first", "scorers first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			u := &upgrading{replicas: newReplicas(t)}
			u.learning = []*process{u.learnerFrom(old, u.servers.kafka)}
			u.send(50)
			u.awaitSaved()
			u.learning = append(u.learning, u.learnerFrom(old, u.servers.kafka)) // the group has no partition for it
			u.learning[1].httpAddr()
			u.scoring = []*process{u.scorer(old), u.scorer(old)}
			u.stopFeed = u.flow(5, 20*time.Millisecond)
			u.ask(2)
			if order == "scorers first" {
				u.scorers(bin)
			}
			first := u.learner()
			u.awaitStandby(first)
			u.learning[1].stop()
			second := u.learner()
			u.awaitStandby(second)
			time.Sleep(5 * time.Second) // whoever flaps does so by now
			if first.takeOvers()+second.takeOvers() > 0 {
				t.Error("a new learner was active beside one of 0.1.0")
			}
			began := time.Now()
			u.learning[0].stop()
			u.learning = []*process{first, second}
			for activeOf(u.learning) < 0 {
				if time.Sleep(100 * time.Millisecond); time.Since(began) > 2*patience {
					t.Fatal("no new learner is active two minutes after the last one of 0.1.0 was stopped")
				}
			}
			took := time.Since(began).Round(100 * time.Millisecond)
			if order == "learners first" {
				u.scorers(bin)
			}
			u.finish()
			if n := first.takeOvers() + second.takeOvers(); n != 1 {
				t.Errorf("new learners became active %d times, want once", n)
			}
			t.Logf("a new learner was active %v after the last one of 0.1.0 was stopped", took)
		})
	}
}

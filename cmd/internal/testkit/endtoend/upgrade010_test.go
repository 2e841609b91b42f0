package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hamlet/algos/model"
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

// From 0.1.0, which has another numerics, with requests and labels flowing: a learner of this release is a shadow
// beside those of 0.1.0, scorers of this release answer from the model of 0.1.0, and the new model is promoted. No
// request and no event is lost.
func TestNewNumericsFrom010(t *testing.T) {
	old := programs010(t)
	u := &upgrading{replicas: newReplicas(t)}
	u.learning = []*process{u.learnerFrom(old, u.servers.kafka)}
	u.send(50)
	u.awaitSaved()
	u.scoring = []*process{u.scorer(old), u.scorer(old)}
	u.stopFeed = u.flow(5, 20*time.Millisecond)
	u.ask(2)
	u.takeOver(bin, "14", model.CurrentNumerics(), false)
}

package kruisekit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// TestDocumentedLimits compares the limits in docs/security.md with those in the code.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| restart requests of a pod that wait | %d |", containerrestart.MaxQueued+1),
		fmt.Sprintf("| restores of a copy of a ResourceDistribution that a tenant changes or deletes | 1 in %d seconds |",
			distribution.RepairPause/time.Second),
		fmt.Sprintf("| records of a PersistentPodState | %d MiB of JSON |", podstate.MostBytes>>20),
		fmt.Sprintf("| pull secrets of a job | %d, each of at most %d KiB |",
			imagepull.MaxPullSecrets, imagepull.MaxPullSecretBytes>>10),
		fmt.Sprintf("| images of a node | %d;", imagepull.MaxImages),
		fmt.Sprintf("| a NodeImage, with its tags, jobs, pull secrets and sandboxConfigs | %d MiB,",
			imagepull.MaxNodeBytes>>20),
		fmt.Sprintf("| `sandboxConfig` of a job | %d KiB |", imagepull.MaxSandboxBytes>>10),
		fmt.Sprintf("| subsets of a UnitedDeployment | %d;", validation.MaxSubsets),
		fmt.Sprintf("| probes of all pods of a node | %d KiB of JSON in their NodePodProbe", podprobe.MaxContent>>10),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/security.md lacks %q", row)
		}
	}
}

package kruisekit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/uniteddeployment"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
)

// TestDocumentedLimits compares the limits in docs/security.md with those in the code.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| restart requests of a pod that wait | %d |", containerrestart.MaxQueued+1),
		fmt.Sprintf("| pods that admission records for one subset of a WorkloadSpread, versions of its pods | %d, %d |",
			subset.MaxRecords, subset.MaxVersions),
		fmt.Sprintf(
			"| restores of a copy of a ResourceDistribution that a tenant changes or deletes | %d in a minute |",
			distribution.MaxRepairs),
		fmt.Sprintf("| pods that refuse the containers of an EphemeralJob | %d in a pass, each again after %d seconds, "+
			"later after %d |", ephemeral.MaxRefusals, ephemeral.FirstRetry/time.Second, ephemeral.LastRetry/time.Second),
		fmt.Sprintf("| records of a PersistentPodState | %d MiB of JSON |", podstate.MostBytes>>20),
		fmt.Sprintf("| pull secrets of a job | %d, each of at most %d KiB |",
			imagepull.MaxPullSecrets, imagepull.MaxPullSecretBytes>>10),
		fmt.Sprintf("| images of a node, tags of an image, jobs of a tag | %d, %d, %d;",
			imagepull.MaxImages, imagepull.MaxTags, imagepull.MaxOwners),
		fmt.Sprintf("| references to pull secrets that an image of a NodeImage keeps after their jobs have ended | %d |",
			imagepull.MaxBatchSecrets),
		fmt.Sprintf("| a NodeImage, with the names of images, jobs and pull secrets | %d MiB,", imagepull.MaxNodeBytes>>20),
		fmt.Sprintf("| `sandboxConfig` of a job, of all images of a node | %d KiB, %d KiB;",
			imagepull.MaxSandboxBytes>>10, imagepull.MaxNodeSandboxBytes>>10),
		fmt.Sprintf("| subsets of a UnitedDeployment | %d;", uniteddeployment.MaxSubsets),
		fmt.Sprintf("| probes of all pods of a node | %d KiB of JSON in their NodePodProbe", podprobe.MaxContent>>10),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/security.md lacks %q", row)
		}
	}
}

package imagepull_test

import (
	"fmt"
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// Jobs that follow each other on an image that stays listed leave no growing list of references to secrets that are
// deleted.
func TestReleasedSecrets(t *testing.T) {
	n := nodeImage("n1", lists("nginx:1", 0, "long"), inZone, did("nginx:1", 0, pulling),
		secretsOf("nginx", v1beta1.ReferenceObject{Name: "long", Mode: "batch"}))
	for i := range 200 {
		name := fmt.Sprintf("job-%d", i)
		q := request(pullJob(name, "nginx:1"), name)
		q.Secrets[0].Mode = v1beta1.ReferenceObjectModeBatch
		n = apply(t, q, n)
		asked := 0
		plan := imagepull.Maintain(imagepull.Upkeep{
			Node: clusterNode(), Image: n, Now: noon(), SecretGone: func(s v1beta1.ReferenceObject) bool {
				asked++
				return s.Name != name && s.Name != "long"
			},
		})
		if plan.Update != nil {
			n = plan.Update
		}
		if asked > 2 {
			t.Fatalf("%s: %d secrets are looked up", name, asked)
		}
	}
	secrets := n.Spec.Images["nginx"].PullSecrets
	if len(secrets) != imagepull.MaxBatchSecrets || secrets[0].Name != "long" ||
		secrets[len(secrets)-1].Name != "job-199" || secrets[1].Name != "job-137" {
		t.Errorf("%d secrets, %v to %v", len(secrets), secrets[0].Name, secrets[len(secrets)-1].Name)
	}
}

// References that running jobs need stay, however many they are.
func TestNeededSecrets(t *testing.T) {
	many := make([]v1beta1.ReferenceObject, 80)
	for i := range many {
		many[i] = v1beta1.ReferenceObject{Name: fmt.Sprint(i), Mode: v1beta1.ReferenceObjectModeBatch}
	}
	n := nodeImage("n1", lists("nginx:1", 0, "a"), inZone, secretsOf("nginx", many...))
	plan := imagepull.Maintain(imagepull.Upkeep{
		Node: clusterNode(), Image: n, Now: noon(), SecretGone: func(v1beta1.ReferenceObject) bool { return false },
	})
	if plan.Update != nil {
		t.Errorf("%d secrets stay", len(plan.Update.Spec.Images["nginx"].PullSecrets))
	}
}

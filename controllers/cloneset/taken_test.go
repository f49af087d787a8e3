package cloneset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
	"github.com/kruisekit/kruisekit/test/requests"
)

// A pod whose claim name is taken would be Pending for ever. The set waits for the name, reports that once, and creates
// its other pods meanwhile, also where only one may be created at a time.
func TestClaimNameTaken(t *testing.T) {
	cases := map[string]struct {
		why, take, free, text, other string
	}{
		"terminating": {
			why:   "a claim that terminates is deleted when no pod uses it any more",
			take:  `{"finalizers":["kubernetes.io/pvc-protection"],"deletionTimestamp":"now"}`,
			free:  `{"finalizers":null}`,
			text:  "is terminating",
			other: "web-ac",
		},
		"of another owner": {
			why:   "the claim may hold the data of another workload",
			take:  `{"ownerReferences":null}`,
			free:  `{"delete":"now"}`,
			text:  "is not controlled by web",
			other: "web-ac",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, cloneset.Options{NewID: numbered()})
			set := m.create("web", 2, func(s *v1beta1.CloneSet) {
				twoClaims(s)
				s.Spec.ScaleStrategy = v1beta1.CloneSetScaleStrategy{
					EnablePVCReuse: true, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				}
			})
			m.eventually(set, settled)
			logs := &corev1.PersistentVolumeClaim{}
			logs.Namespace, logs.Name = m.namespace, "logs-web-aa"
			m.edit(logs, c.take)
			m.delete(m.podNamed(set, "web-aa"))
			m.scale(set, 3)
			waits := func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
				if got := names(pods); !slices.Equal(got, []string{"web-ab", c.other}) {
					return fmt.Errorf("pods %v, want web-ab and %s", got, c.other)
				}
				return nil
			}
			m.eventually(set, all(waits, m.emitted("FailedCreate", 1)))
			for range 5 { // passes, each when the one before asks for it
				m.stays(set, all(waits, m.emitted("FailedCreate", 1)))
				m.Clock = m.Due
			}
			if event := m.Server.Events(set, "FailedCreate")[0]; !strings.Contains(event.Message, "logs-web-aa "+c.text) {
				t.Errorf("%s: event %q, want %q", c.why, event.Message, c.text)
			}
			if asked := requests.About(m.Server.Requests(), "POST", "logs-web-aa"); len(asked) != 1 { // the one that created it
				t.Errorf("requests while the name is taken: %v", asked)
			}
			m.edit(logs, c.free)
			m.eventually(set, settled)
			if got := names(m.pods(set)); !slices.Equal(got, []string{"web-aa", "web-ab", c.other}) {
				t.Errorf("%s: pods %v, want web-aa again", c.why, got)
			}
		})
	}
}

// edit patches the metadata of an object; a deletionTimestamp or delete deletes the object.
func (u *user) edit(o client.Object, metadata string) {
	u.Helper()
	deletes := strings.Contains(metadata, `"now"`)
	metadata = strings.NewReplacer(`,"deletionTimestamp":"now"`, "", `"delete":"now"`, "").Replace(metadata)
	if err := u.client.Patch(u.Context(), o,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`))); err != nil {
		u.Fatal(err)
	}
	if deletes {
		if err := u.client.Delete(u.Context(), o); err != nil {
			u.Fatal(err)
		}
	}
}

// podNamed returns a pod of the set.
func (u *user) podNamed(set *v1beta1.CloneSet, name string) corev1.Pod {
	u.Helper()
	pods := u.pods(set)
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		u.Fatalf("no pod %s among %v", name, names(pods))
	}
	return pods[i]
}

package daemonset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Nodes pull the images of each rollout ahead, however it updates pods, as in the reference, but for a rollout that
// updates all nodes at once.
func TestPreDownload(t *testing.T) {
	sidecar := func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Containers = append(s.Spec.Template.Spec.Containers,
			corev1.Container{Name: "log", Image: "log:1"})
	}
	for name, c := range map[string]struct {
		why   string
		nodes int
		base  []func(*v1beta1.DaemonSet)
		// before are changes that update no pod, or some.
		before, change []func(*v1beta1.DaemonSet)
		want           []string
	}{
		"standard": {"pods are recreated, and find the image", 4, nil, nil, nil, []string{"agent:2 1 300"}},
		"annotations": {
			"parallelism and timeout are those of the annotations, and no updated pod is waited for", 4,
			[]func(*v1beta1.DaemonSet){func(s *v1beta1.DaemonSet) {
				s.Annotations = map[string]string{
					kruise.ImagePreDownloadParallelismKey: "5", kruise.ImagePreDownloadTimeoutSecondsKey: "60",
					kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "2",
				}
			}},
			nil, nil,
			[]string{"agent:2 5 60"},
		},
		"an older revision": {
			"some pods still lack an image that others have", 4, nil,
			[]func(*v1beta1.DaemonSet){sidecar, partition("2")},
			[]func(*v1beta1.DaemonSet){partition("4")},
			[]string{"agent:2 1 300", "log:1 1 300"},
		},
		"at once": {"no pod waits for another one", 4, []func(*v1beta1.DaemonSet){unavailable("100%")}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.nodes, daemonset.Options{PreDownload: true})
			if err := owned.Index(t.Context(), m.Server, workloads.PullJobMetadata(&v1beta1.ImagePullJob{})); err != nil {
				t.Fatal(err)
			}
			set := m.create(c.base...)
			m.eventually(set, settled(int32(c.nodes)))
			if c.before != nil {
				m.change(set, c.before...)
				m.Still()
			}
			m.change(set, append([]func(*v1beta1.DaemonSet){image("agent:2")}, c.change...)...)
			m.Reconcile()
			if diff := cmp.Diff(c.want, m.jobs(set)); diff != "" {
				t.Errorf("%s; images with parallelism and timeout (-want +got):\n%s", c.why, diff)
			}
			m.change(set, partition("0"))
			m.eventually(set, settled(int32(c.nodes)))
			if left := m.jobs(set); len(left) > 0 {
				t.Errorf("after the rollout: %v", left)
			}
		})
	}
}

// jobs are the pull jobs of the update revision, in a few words.
func (m *model) jobs(set *v1beta1.DaemonSet) []string {
	m.Helper()
	m.Look(set)
	var list v1beta1.ImagePullJobList
	if err := m.Server.List(m.Context(), &list, client.InNamespace(set.Namespace)); err != nil {
		m.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		if job := &list.Items[i]; strings.HasPrefix(job.Name, set.Name+"-") && job.DeletionTimestamp == nil {
			all = append(all, fmt.Sprintf("%s %s %d", job.Spec.Image, job.Spec.Parallelism, *job.Spec.PullPolicy.TimeoutSeconds))
		}
	}
	slices.Sort(all)
	return all
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// migrated is a state of a source, which migrate takes over without a restart, or refuses with a reason.
type migrated struct {
	kind, spec string
	// prepare brings the source, whose pods are ready, into the state.
	prepare func(*testing.T, *space)
	// refused is part of the reason.
	refused string
	// target is a field of the target in the end, with its value.
	target [2]string
	// back runs the printed way back, too.
	back bool
}

// states are those that a user finds a source in.
func states() map[string]migrated {
	const careful = "replicas: 2\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}"
	const set = "replicas: 2\n  podManagementPolicy: Parallel\n  "
	const retention = "persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}"
	const paused = ".spec.updateStrategy.rollingUpdate.paused"
	return map[string]migrated{
		"Deployment":         {kind: "Deployment", spec: careful, target: [2]string{paused, "false"}, back: true},
		"Deployment, paused": {kind: "Deployment", spec: careful, prepare: pauses, target: [2]string{paused, "true"}},
		"Deployment, paused half way": {
			kind: "Deployment", spec: careful, refused: "is not settled", prepare: func(t *testing.T, s *space) {
				updates("plugin/web:missing")(t, s)
				pauses(t, s)
			},
		},
		"Deployment, bad image": {
			kind: "Deployment", spec: careful, refused: "is not settled", prepare: updates("plugin/web:missing"),
		},
		"Deployment, two ReplicaSets": {
			kind: "Deployment", spec: careful + "\n  minReadySeconds: 500", refused: "is not settled",
			prepare: updates("plugin/web:2"),
		},
		"Deployment, pod terminates": {kind: "Deployment", spec: careful, refused: "terminates", prepare: terminates},
		"Deployment, foreign pod":    {kind: "Deployment", spec: careful, refused: "to Job/other", prepare: intrudes},
		"Deployment, owner":          {kind: "Deployment", spec: careful, refused: "to ConfigMap/owner", prepare: owns},
		"Deployment, target exists": {
			kind: "Deployment", spec: careful, refused: "CloneSet/web exists", prepare: func(t *testing.T, s *space) {
				s.apply(t, strings.ReplaceAll(clonesOf("web", 1), "app: web", "app: other"))
			},
		},
		"StatefulSet": {
			kind: "StatefulSet", spec: set + retention, back: true,
			target: [2]string{".spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Delete"},
		},
		"StatefulSet, ordinals": {
			kind: "StatefulSet", spec: set + "ordinals: {start: 5}\n  " + retention,
			target: [2]string{".spec.reserveOrdinals", `["0-4"]`},
		},
		"StatefulSet, OnDelete": {
			kind: "StatefulSet", spec: set + "updateStrategy: {type: OnDelete}", back: true,
			target: [2]string{".spec.updateStrategy.type", "OnDelete"},
		},
		"StatefulSet, canary": {
			kind: "StatefulSet", spec: set + "updateStrategy: {rollingUpdate: {partition: 1}}", refused: "is not settled",
			prepare: func(t *testing.T, s *space) {
				s.do(t, "set", "image", "statefulsets.apps/web", "app=plugin/web:2")
				s.reaches(t, "statefulsets.apps/web", ".status.updatedReplicas", "1")
			},
		},
	}
}

// testStates migrates sources in place.
func (p *plugin) testStates(t *testing.T) {
	p.space(t).prints(t, []string{"kruisekit, image "}, "migrate", "--check", "--manager-namespace="+system)
	for name, state := range states() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := p.space(t)
			s.apply(t, workload("apps/v1", state.kind, "web", state.spec))
			s.pods(t, "web", 2)
			s.reaches(t, strings.ToLower(state.kind)+"s.apps/web", ".status.readyReplicas", "2")
			if state.prepare != nil {
				state.prepare(t, s)
			}
			state.test(t, s)
		})
	}
}

func (m migrated) test(t *testing.T, s *space) {
	kind, target, inPlace := "StatefulSet", "asts/web", "--in-place=false"
	if m.kind == "Deployment" {
		kind, target, inPlace = "CloneSet", "cloneset/web", "--in-place"
	}
	words := []string{"migrate", kind, "--from", m.kind, "--src-name", "web", inPlace, "--timeout-seconds=120"}
	before := s.uids(t)
	if m.refused != "" {
		s.fails(t, m.refused, append(words, "--dry-run=server")...)
		got := s.exits(t, 1, "", words...)
		if now := s.uids(t); !strings.Contains(got.err, m.refused) || !maps.Equal(before, now) {
			t.Errorf("%q, want %q; pods before %v, now %v", got.err, m.refused, before, now)
		}
		s.field(t, strings.ToLower(m.kind)+"s.apps/web", ".metadata.name") // it exists
		t.Logf("refused: %s", strings.TrimSpace(got.err))
		return
	}
	pods := s.pods(t, "web", 2)
	s.prints(t, []string{"keeps running, and changes its owner (dry run)"}, append(words, "--dry-run=server")...)
	said := s.do(t, words...)
	s.owned(t, kind, pods)
	s.kept(t, "web", pods, "plugin/web:1", 0)
	s.has(t, "deployments.apps,statefulsets.apps,replicasets.apps", ".items", "[]")
	s.reaches(t, target, ".status.readyReplicas", "2")
	s.has(t, target, m.target[0], m.target[1])
	t.Logf("%d pods kept: %s", len(pods), strings.TrimSpace(said[strings.LastIndex(said, "\n  "):]))
	if m.back {
		m.goBack(t, s, said, pods)
	}
}

// goBack pastes the way back that the last step has printed. The pods are those of the source again.
func (m migrated) goBack(t *testing.T, s *space, said string, pods map[string]onePod) {
	t.Helper()
	_, script, _ := strings.Cut(said[strings.LastIndex(said, "The way back:"):], "\n")
	script, _, _ = strings.Cut(script, "\nSuccessfully")
	if _, err := s.Shell(t.Context(), script); err != nil {
		t.Fatalf("%v", err)
	}
	s.reaches(t, strings.ToLower(m.kind)+"s.apps/web", ".status.updatedReplicas", "2")
	s.reaches(t, strings.ToLower(m.kind)+"s.apps/web", ".status.readyReplicas", "2")
	s.kept(t, "web", pods, "plugin/web:1", 0)
	for name := range pods {
		if owner := metav1.GetControllerOf(s.pod(t, name)); owner == nil || owner.APIVersion != "apps/v1" {
			t.Errorf("pod %s belongs to %v", name, owner)
		}
	}
	s.has(t, "clonesets,statefulsets.apps.kruise.io", ".items", "[]")
}

// uids are those of the pods with the labels of the source, and how often their containers have restarted.
func (s *space) uids(t *testing.T) map[string]string {
	t.Helper()
	var list corev1.PodList
	of := client.MatchingLabels{"app": "web"}
	if err := s.Client.List(t.Context(), &list, client.InNamespace(s.namespace), of); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		pod := &list.Items[i]
		all[pod.Name] = fmt.Sprint(pod.UID, onePodOf(pod).restarts, metav1.GetControllerOf(pod))
	}
	return all
}

// reaches waits for the value of a field.
func (s *space) reaches(t *testing.T, object, path, want string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if got := s.field(t, object, path); got != want {
			return fmt.Errorf("%s of %s is %q, want %q", path, object, got, want)
		}
		return nil
	})
}

func pauses(t *testing.T, s *space) {
	s.do(t, "rollout", "pause", "deployment/web")
	s.observed(t)
}

func (s *space) observed(t *testing.T) {
	t.Helper()
	s.reaches(t, "deployment/web", ".status.observedGeneration", s.field(t, "deployment/web", ".metadata.generation"))
}

// updates rolls out an image, until the first pod has it.
func updates(image string) func(*testing.T, *space) {
	return func(t *testing.T, s *space) {
		s.do(t, "set", "image", "deployment/web", "app="+image)
		s.reaches(t, "deployment/web", ".status.updatedReplicas", "1")
		s.reaches(t, "deployment/web", ".status.replicas", "3")
		if !strings.HasSuffix(image, "missing") {
			s.reaches(t, "deployment/web", ".status.readyReplicas", "3")
		}
	}
}

// terminates deletes a pod, whose helper goes on for its grace period, and waits for the other one.
func terminates(t *testing.T, s *space) {
	name := ""
	for name = range s.pods(t, "web", 2) {
		break
	}
	deletes := func(ctx context.Context, seconds int) {
		if _, err := s.Kubectl(ctx, "delete", "pod", "-n", s.namespace, name, "--wait=false",
			fmt.Sprint("--grace-period=", seconds)); err != nil {
			t.Error(err)
		}
	}
	deletes(t.Context(), 600)
	t.Cleanup(func() { deletes(context.WithoutCancel(t.Context()), 1) })
	eventually(t, func(context.Context) error {
		got := s.field(t, "deployment/web", ".status")
		if n := len(s.uids(t)); n != 3 || !strings.Contains(got, `"readyReplicas":2,"replicas":2`) {
			return fmt.Errorf("%d pods, status %s", n, got)
		}
		return nil
	})
}

// intrudes creates a Job whose pod has the labels that the source selects.
func intrudes(t *testing.T, s *space) {
	s.apply(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: other}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      restartPolicy: Never
      containers: [{name: app, image: "plugin/helper:1", command: [sleep, "100000"]}]
`)
	s.pods(t, "web", 3)
}

// owns gives the source a controller.
func owns(t *testing.T, s *space) {
	s.apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	reference := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner",`+
		`"uid":%q,"controller":true}]}}`, s.field(t, "configmap/owner", ".metadata.uid"))
	s.do(t, "patch", "deployment/web", "--type=merge", "-p", reference)
}

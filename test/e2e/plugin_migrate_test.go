//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// migrated is a source that migrate takes over in place, and that takes its pods back.
type migrated struct {
	kind, spec string
	// target is a field of the target in the end, with its value.
	target [2]string
}

// testMigrate migrates sources in place, and goes the printed way back.
func (p *plugin) testMigrate(t *testing.T) {
	p.space(t).prints(t, []string{"kruisekit, image "}, "migrate", "--check", "--manager-namespace="+system)
	for _, m := range []migrated{
		{
			kind: "Deployment", spec: "replicas: 2\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}",
			target: [2]string{".spec.updateStrategy.rollingUpdate.paused", "false"},
		},
		{
			kind: "StatefulSet", spec: "replicas: 2\n  podManagementPolicy: Parallel\n" +
				"  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}",
			target: [2]string{".spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Delete"},
		},
	} {
		t.Run(m.kind, func(t *testing.T) {
			t.Parallel()
			m.test(t, p.space(t))
		})
	}
}

func (m migrated) test(t *testing.T, s *space) {
	kind, target, inPlace := "StatefulSet", "asts/web", "--in-place=false"
	if m.kind == "Deployment" {
		kind, target, inPlace = "CloneSet", "cloneset/web", "--in-place"
	}
	s.apply(t, workload("apps/v1", m.kind, "web", m.spec))
	pods := s.pods(t, "web", 2)
	s.reaches(t, strings.ToLower(m.kind)+"s.apps/web", ".status.readyReplicas", "2")
	words := []string{"migrate", kind, "--from", m.kind, "--src-name", "web", inPlace, "--timeout-seconds=120"}
	s.prints(t, []string{"keeps running, and changes its owner (dry run)"}, append(words, "--dry-run=server")...)
	said := s.do(t, words...)
	s.owned(t, kind, pods)
	s.kept(t, "web", pods, "plugin/web:1", 0)
	s.has(t, "deployments.apps,statefulsets.apps,replicasets.apps", ".items", "[]")
	s.reaches(t, target, ".status.readyReplicas", "2")
	s.has(t, target, m.target[0], m.target[1])
	m.goBack(t, s, said, pods)
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

// testAdopt has a CloneSet take the pods of a Deployment over, and update them.
func (p *plugin) testAdopt(t *testing.T) {
	s := p.space(t)
	// A surge would replace pods.
	s.apply(t, workload("apps/v1", "Deployment", "web", "replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 0}}"))
	before := s.pods(t, "web", 3)
	s.prints(t, []string{"Successfully migrated 3 replicas"}, "migrate", "CloneSet", "--from", "Deployment", "--src-name",
		"web", "--in-place", "--timeout-seconds=120")
	s.kept(t, "web", before, "plugin/web:1", 0)
	s.owned(t, "CloneSet", before)
	s.has(t, "deployments,replicasets.apps", ".items", "[]")
	s.exits(t, 2, "", "plan", "cloneset/web", "--image=app=plugin/web:2")
	s.do(t, "set", "image", "cloneset/web", "app=plugin/web:2")
	s.do(t, "rollout", "status", "cloneset/web", "--timeout=2m")
	// Pods of Deployments lack the readiness gate, so that they count as ready before their containers restart.
	eventually(t, func(context.Context) error {
		for name, is := range s.pods(t, "web", 3) {
			if is.restarts["app"] == before[name].restarts["app"] {
				return fmt.Errorf("app of pod %s has not restarted", name)
			}
		}
		return nil
	})
	s.kept(t, "web", before, "plugin/web:2", 1)
}

// owned expects that a kind of apps.kruise.io controls pods.
func (s *space) owned(t *testing.T, kind string, pods map[string]onePod) {
	t.Helper()
	eventually(t, func(context.Context) error {
		for name := range pods {
			owners := s.pod(t, name).OwnerReferences
			if len(owners) != 1 || owners[0].Kind != kind || !strings.HasPrefix(owners[0].APIVersion, "apps.kruise.io/") {
				return fmt.Errorf("pod %s has owners %+v", name, owners)
			}
		}
		return nil
	})
}

func (s *space) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

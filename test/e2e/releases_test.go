//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kruisekit/kruisekit/test/cluster/image"
)

var (
	previousRevision = flag.String("previous", "",
		"the git revision whose manager TestReleases runs beside that of this tree; empty skips the test")
	releasesTime = flag.Duration("previous-for", 10*time.Minute, "how long TestReleases changes objects")
)

// otherLabel is on the pods of a manager beside those of config/default.
const otherLabel = "kruisekit.dev/other-manager"

// TestReleases runs the manager of an earlier revision beside that of this tree, as an upgrade does, and does what
// TestSoak does. The leader ends again and again, so that both of them lead in turn, and both answer webhooks all the
// time.
func TestReleases(t *testing.T) {
	if *previousRevision == "" {
		t.Skip("builds an earlier revision: run make releases")
	}
	s := newSoak(t)
	s.deployPrevious(t, *previousRevision)
	s.run(t, *releasesTime)
	for _, release := range []string{"this", "previous"} {
		if s.report.counts["leads after a kill"][release] == 0 {
			t.Errorf("the manager of the release %q never led", release)
		}
	}
}

// deployPrevious replaces one of two replicas by one of an earlier revision, with the Deployment that the revision has
// for it.
func (s *soak) deployPrevious(t *testing.T, revision string) {
	t.Helper()
	tree := checkOut(t, revision)
	d := s.managerOf(t, tree)
	main := &d.Spec.Template.Spec.Containers[0]
	main.Args = append(main.Args, soakArguments()...)
	s.start(t, beside(d, pushFrom(t, s.deployed, tree)))
}

// managerOf is the Deployment of managers of a tree.
func (s *soak) managerOf(t *testing.T, tree string) *appsv1.Deployment {
	t.Helper()
	text, err := s.Kubectl(t.Context(), "kustomize", filepath.Join(tree, "config/default"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		one := &appsv1.Deployment{}
		if yaml.Unmarshal([]byte(document), one) == nil && one.Kind == "Deployment" && one.Name == managerName {
			return one
		}
	}
	t.Fatalf("%s has no Deployment %s", tree, managerName)
	return nil
}

// beside is a Deployment of one manager of another image, which serves and may lead beside those of a Deployment.
func beside(d *appsv1.Deployment, image string) *appsv1.Deployment {
	other := &appsv1.Deployment{ObjectMeta: objectMeta(system, managerName+"-other"), Spec: *d.Spec.DeepCopy()}
	label := labels.Set{otherLabel: "true"}
	other.Spec.Replicas = ptr.To[int32](1)
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels.Merge(d.Spec.Selector.MatchLabels, label)}
	other.Spec.Template.Labels = labels.Merge(d.Spec.Template.Labels, label)
	other.Spec.Template.Spec.Containers[0].Image = image
	return other
}

// start replaces one of two replicas by that of another Deployment.
func (s *soak) start(t *testing.T, other *appsv1.Deployment) {
	t.Helper()
	if err := s.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Client.Delete(context.WithoutCancel(t.Context()), other, client.PropagationPolicy("Background"))
	})
	s.scale(t, 1)
	s.managers = map[string]int32{managerName: 1, other.Name: 1}
	eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
}

// checkOut writes the files of a revision into a directory.
func checkOut(t *testing.T, revision string) string {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "tree.tar")
	run(t, "../..", "git", "archive", "--output", archive, revision)
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, tree, "tar", "-xf", archive)
	return tree
}

// pushFrom builds the manager of a tree, and returns the reference of its image.
func pushFrom(t *testing.T, m *deployed, tree string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kruise-manager")
	arguments := append([]string{
		"build", "-tags=grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program,
	}, flags...)
	run(t, tree, "go", append(arguments, "./examples/kruise-manager")...)
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	spec := image.Program("kruise-manager", content)
	spec.Name = "e2e/kruise-manager:other"
	return "e2e/kruise-manager@" + m.Push(t, spec).Digest
}

// run runs a command in a directory.
func run(t *testing.T, dir, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%s %v: %w\n%s", name, arguments, err, out))
	}
}

// countLeader counts the release that leads, where there are two.
func (s *soak) countLeader(t *testing.T) {
	t.Helper()
	if len(s.managers) == 1 {
		return
	}
	leader := s.leader(t)
	for _, pod := range s.serving(t) {
		if pod.Name != leader {
			continue
		}
		release := "this"
		if pod.Labels[otherLabel] != "" {
			release = "previous"
		}
		s.report.count("leads after a kill", release)
	}
}

// ready reports why the replicas of all Deployments of managers are not available.
func (s *soak) ready(ctx context.Context) error {
	for name, replicas := range s.managers {
		if err := s.available(ctx, name, replicas); err != nil {
			return err
		}
	}
	return nil
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// testRestart restarts containers in their pods, within a budget.
func (p *plugin) testRestart(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 3))
	before := s.pods(t, "web", 3)
	s.budget(t, s.namespace, "web", 3)
	s.do(t, "restart", "cloneset/web", "--dry-run=client")
	s.do(t, "create", "ContainerRecreateRequest", "none", "--pod="+anyOf(before), "--dry-run=server")
	s.fails(t, `no container "other"`, "restart", "cloneset/web", "--containers=other")
	s.prints(t, []string{"3 of 3 pods", "containers restarted"}, "restart", "cloneset/web", "--containers=app",
		"--max-unavailable=2", "--unready-grace=1", "--interval=200ms", "--timeout=2m")
	s.kept(t, "web", before, "plugin/web:1", 1)

	one := anyOf(before)
	s.do(t, "create", "ContainerRecreateRequest", "again", "--pod="+one, "--containers=helper", "-u", "1", "-m", "2")
	s.has(t, "containerrecreaterequest/again", ".spec.containers[*].name", "helper")
	s.has(t, "containerrecreaterequest/again", ".spec.strategy.unreadyGracePeriodSeconds", "1")
	s.has(t, "containerrecreaterequest/again", ".spec.strategy.minStartedSeconds", "2")
	s.do(t, "wait", "containerrecreaterequest/again", "--for=jsonpath={.status.phase}=Completed", "--timeout=1m")
	for name, is := range s.pods(t, "web", 3) {
		want := map[bool]int32{true: 1}[name == one]
		if is.uid != before[name].uid || is.restarts["helper"] != want || is.restarts["app"] != 1 {
			t.Errorf("pod %s restarted %v times, want %d times helper", name, is.restarts, want)
		}
	}
}

// testPull pulls images to one node each.
func (p *plugin) testPull(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 1))
	var node string
	for _, pod := range s.pods(t, "web", 1) {
		node = pod.node
	}
	s.do(t, "create", "secret", "docker-registry", "login", "--docker-username=a", "--docker-password=b")
	s.exits(t, 0, "", "pull", "plugin/pull:1", "--pods=app=web", "--dry-run=server")
	s.prints(t, []string{"created", "1 of 1 nodes succeeded"}, "pull", "plugin/pull:1", "--pods=app=web",
		"--interval=200ms", "--parallelism=1", "--keep=1h")
	s.prints(t, []string{"1 of 1 nodes succeeded"}, "pull", "plugin/pull:2", "--nodes="+node, "--timeout=1m",
		"--pull-secrets=login")
	s.prints(t, []string{"1 of 1 nodes succeeded"}, "pull", "plugin/pull:3", "-l", corev1.LabelHostname+"="+node)
	s.do(t, "pull", "plugin/pull:1", "--wait=false")
	var jobs v1beta1.ImagePullJobList
	if err := s.Client.List(t.Context(), &jobs, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 4 {
		t.Errorf("%d jobs, want 4", len(jobs.Items))
	}
	pulled := false
	for _, job := range jobs.Items {
		pulled = pulled || job.Spec.Image == "plugin/pull:1" && job.Spec.PodSelector != nil &&
			*job.Spec.CompletionPolicy.TTLSecondsAfterFinished == 3600 && job.Status.Succeeded == 1
	}
	if !pulled {
		t.Errorf("no job pulled to the nodes of the pods: %+v", jobs.Items)
	}
	if got := s.exits(t, 1, "", "pull", "plugin/absent:1", "--nodes="+node); !strings.Contains(got.err, "1 nodes failed") {
		t.Errorf("%q", got.err)
	}
}

// testProtect has deletions refused, until they are not.
func (p *plugin) testProtect(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 1))
	s.pods(t, "web", 1)
	s.do(t, "protect", "cloneset/web", "--dry-run=server")
	s.prints(t, []string{"protected"}, "protect", "cloneset/web")
	s.refuses(t, "cloneset", "web")
	s.do(t, "unprotect", "cloneset/web", "--dry-run=server")
	s.refuses(t, "cloneset", "web")
	s.prints(t, []string{"protected"}, "protect", "namespace/"+s.namespace, "--cascading")
	s.refuses(t, "namespace", s.namespace)
	s.prints(t, []string{"unprotected"}, "unprotect", "cloneset/web")
	if _, err := s.Kubectl(t.Context(), "delete", "cloneset", "-n", s.namespace, "web", "--wait=true"); err != nil {
		t.Error(err)
	}
	s.do(t, "unprotect", "namespace/"+s.namespace)
	s.has(t, "namespace/"+s.namespace, ".metadata.labels.policy\\.kruise\\.io/delete-protection", "")
}

// refuses expects that an object cannot be deleted.
func (s *space) refuses(t *testing.T, kind, name string) {
	t.Helper()
	_, err := s.Kubectl(t.Context(), "delete", kind, "-n", s.namespace, name, "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), "protect") {
		t.Errorf("deletion of %s %s: %v", kind, name, err)
	}
}

// testPauseAll pauses the workloads of a namespace, but one that is paused already.
func (p *plugin) testPauseAll(t *testing.T) {
	s, other := p.space(t), p.space(t)
	s.apply(t, clonesOf("web", 0))
	s.apply(t, clonesOf("before", 0))
	s.apply(t, workload(kruiseApps, "StatefulSet", "db", "replicas: 0"))
	other.apply(t, clonesOf("web", 0))
	s.do(t, "rollout", "pause", "cloneset/before")
	s.do(t, "pause-all", "--dry-run=server")
	s.has(t, "cloneset/web", ".spec.updateStrategy.rollingUpdate.paused", "")
	s.prints(t, []string{"web paused", "db paused"}, "pause-all")
	s.has(t, "cloneset/web", ".spec.updateStrategy.rollingUpdate.paused", "true")
	s.has(t, "asts/db", ".spec.updateStrategy.rollingUpdate.paused", "true")
	other.has(t, "cloneset/web", ".spec.updateStrategy.rollingUpdate.paused", "")
	s.do(t, "pause-all", "--resume")
	for name, want := range map[string]string{"web": "", "before": "true"} {
		if got := s.field(t, "cloneset/"+name, ".spec.updateStrategy.rollingUpdate.paused"); got != want && got != "false" {
			t.Errorf("%s is paused: %q, want %q", name, got, want)
		}
	}
}

// testPauseEverywhere pauses all namespaces. No other test runs beside it.
func (p *plugin) testPauseEverywhere(t *testing.T) {
	s, other := p.space(t), p.space(t)
	s.apply(t, clonesOf("web", 1))
	other.apply(t, clonesOf("web", 1))
	before := s.pods(t, "web", 1)
	other.pods(t, "web", 1)
	s.do(t, "pause-all", "-A")
	s.do(t, "set", "image", "cloneset/web", "app=plugin/web:2")
	s.do(t, "wait", "cloneset/web", "--for=jsonpath={.status.updatedReplicas}=0", "--timeout=1m")
	other.has(t, "cloneset/web", ".spec.updateStrategy.rollingUpdate.paused", "true")
	s.kept(t, "web", before, "plugin/web:1", 0)
	s.do(t, "pause-all", "-A", "--resume")
	s.do(t, "rollout", "status", "cloneset/web", "--timeout=2m")
	s.kept(t, "web", before, "plugin/web:2", 1)
}

// testDiagnose packs objects and logs, and no secret value.
func (p *plugin) testDiagnose(t *testing.T) {
	s := p.space(t)
	s.apply(t, clonesOf("web", 1))
	s.do(t, "set", "env", "cloneset/web", "TOKEN=hidden-from-all")
	s.do(t, "create", "secret", "generic", "token", "--from-literal=token=hidden-from-all")
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	s.prints(t, []string{"Wrote " + file}, "diagnose", "-o", file, "--lines=20", "--manager-namespace="+system)
	files := unpack(t, file)
	for _, name := range []string{
		"version.yaml", "events.txt", "objects/clonesets.apps.kruise.io.yaml", "objects/pods.yaml",
	} {
		if _, has := files[name]; !has {
			t.Errorf("there is no %s", name)
		}
	}
	logs := 0
	for name, text := range files {
		if strings.HasPrefix(name, "logs/") && text != "" {
			logs++
		}
		if strings.Contains(text, "hidden-from-all") {
			t.Errorf("%s has the value of a secret", name)
		}
	}
	if logs < 2+nodes {
		t.Errorf("logs of %d programs, want those of 2 managers and %d daemons", logs, nodes)
	}
	all := filepath.Join(t.TempDir(), "all.tar.gz")
	s.do(t, "diagnose", "-A", "-o", all)
	if !strings.Contains(unpack(t, all)["objects/pods.yaml"], "namespace: "+system+"\n") {
		t.Error("with -A there is no pod of another namespace")
	}
}

// unpack reads the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "kruise-diagnose/")] = string(text)
	}
}

// testMove moves pods from a Deployment to a CloneSet, two at a time.
func (p *plugin) testMove(t *testing.T) {
	s := p.space(t)
	s.apply(t, workload("apps/v1", "Deployment", "web", "replicas: 3"))
	s.pods(t, "web", 3)
	from := []string{"migrate", "CloneSet", "--from", "Deployment", "--src-name", "web"}
	s.do(t, append(from, "--dst-name", "copied", "--create", "--copy")...)
	s.has(t, "cloneset/copied", ".spec.replicas", "3")
	if _, err := s.Kubectl(t.Context(), "delete", "cloneset", "-n", s.namespace, "copied"); err != nil {
		t.Fatal(err)
	}
	s.prints(t, []string{"Successfully created from Deployment/web to CloneSet/moved"},
		append(from, "--dst-name", "moved", "--create")...)
	s.has(t, "cloneset/moved", ".spec.replicas", "0")
	s.prints(t, []string{"Successfully migrated 2 replicas"}, append(from, "--dst-name", "moved", "--replicas=2",
		"--max-surge=2", "--interval=200ms", "--timeout-seconds=120")...)
	s.has(t, "cloneset/moved", ".status.availableReplicas", "2")
	s.has(t, "deployment/web", ".spec.replicas", "1")
	s.pods(t, "web", 3)
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

// testAdoptStatefulSet has a StatefulSet of apps.kruise.io take the pods of one of apps over.
func (p *plugin) testAdoptStatefulSet(t *testing.T) {
	s := p.space(t)
	s.apply(t, workload("apps/v1", "StatefulSet", "db", "replicas: 2\n  podManagementPolicy: Parallel"))
	before := s.pods(t, "db", 2)
	s.prints(t, []string{"Successfully migrated 2 replicas"}, "migrate", "StatefulSet", "--from", "StatefulSet",
		"--src-name", "db", "--timeout-seconds=120")
	s.kept(t, "db", before, "plugin/web:1", 0)
	s.owned(t, "StatefulSet", before)
	s.has(t, "statefulsets.apps", ".items", "[]")
	s.do(t, "set", "image", "asts/db", "app=plugin/web:2")
	s.do(t, "rollout", "status", "asts/db", "--timeout=2m")
	for name, is := range s.pods(t, "db", 2) {
		if is.images["app"] != "plugin/web:2" {
			t.Errorf("pod %s has %s", name, is.images["app"])
		}
	}
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

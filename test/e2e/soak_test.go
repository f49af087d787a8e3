//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

var (
	soakTime = flag.Duration("soak", 0, "how long TestSoak changes objects of all kinds; 0 skips the test")
	soakSeed = flag.Uint64("soak-seed", 0, "seed of the random pauses and kills of TestSoak; 0 draws one")
)

// TestSoak deploys two replicas of the manager and three daemons with every gate on, applies the sample of each kind,
// and changes objects of all kinds for as long as -soak. In the first half, it also kills a random replica or daemon
// again and again. The test fails if an object does not reach its state in time, a process crashes, or the processes
// need more memory or goroutines at the end than at the start. The report has the counts.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("takes as long as -soak wants: run make soak")
	}
	newSoak(t).run(t, *soakTime)
}

// run changes objects of all kinds for a time, and kills processes in the first half of it.
func (s *soak) run(t *testing.T, took time.Duration) {
	t.Helper()
	s.took = took
	s.applySamples(t)
	s.pauseCrons(t, true)
	s.rest(t, "start")
	s.pauseCrons(t, false)
	begin := time.Now()
	end := begin.Add(took)
	work, stop := context.WithDeadline(t.Context(), end)
	defer stop()
	var running sync.WaitGroup
	for _, w := range s.work() {
		running.Add(1)
		go func() {
			defer running.Done()
			s.repeat(work, w)
		}()
	}
	running.Add(1)
	go func() {
		defer running.Done()
		s.sample(work, 15*time.Second)
	}()
	s.killUntil(work, t, begin.Add(took/2))
	s.measure(t.Context(), "half")
	running.Wait()
	s.pauseCrons(t, true)
	s.rest(t, "end")
	for _, pod := range append(s.serving(t), s.daemons(t)...) {
		s.logged(t.Context(), pod.Name)
	}
	s.report.judge(t, took)
}

// soak is a deployment under work.
type soak struct {
	*deployed
	namespace string
	// took is how long the soak takes.
	took time.Duration
	// managers are the replicas of each Deployment of managers.
	managers map[string]int32
	// zones are nodes, by the zone of their label.
	zones  map[string]string
	report *soakReport

	mu     sync.Mutex
	random *rand.Rand
	killed time.Time
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	programs := build(t)
	c := cluster.Start(t, cluster.Options{Level: cluster.Real, Scheme: newScheme(t)})
	waitForRemoval(t, c)
	manager, daemon := programs.push(t, c, "kruise-manager"), programs.push(t, c, "kruise-daemon")
	// The metrics of a daemon serve its node alone by default; here the API server reads them.
	const reachable = `
- target: {kind: DaemonSet, name: kruise-daemon}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--addr=:10221"}, {"op": "remove", "path": "/spec/template/spec/containers/0/livenessProbe/httpGet/host"}, {"op": "remove", "path": "/spec/template/spec/containers/0/readinessProbe/httpGet/host"}]'`
	m := deploy(t, c, overlay(t, soakArguments(), reachable+fullDisk, []string{
		"../../config/pulljobs", "../../config/resourcedistribution",
	}, manager, daemon), theManager, theDaemon)
	s := &soak{
		deployed: m, namespace: m.Namespace(t), zones: map[string]string{}, report: newSoakReport(),
		managers: map[string]int32{managerName: 2},
		random:   rand.New(rand.NewPCG(seed, seed)),
	}
	var list corev1.NodeList
	if err := m.Client.List(t.Context(), &list); err != nil || len(list.Items) != nodes {
		t.Fatalf("%d nodes, %v", len(list.Items), err)
	}
	for i := range list.Items {
		zone := fmt.Sprintf("zone-%c", 'a'+i)
		s.zones[zone] = list.Items[i].Name
		if _, err := m.Kubectl(t.Context(), "label", "--overwrite", "node", list.Items[i].Name,
			corev1.LabelTopologyZone+"="+zone); err != nil {
			t.Fatal(err)
		}
	}
	s.pushNginx(t)
	m.Push(t, image.Spec{Name: "busybox:1.36"})
	for i := range soakImages {
		m.Push(t, image.Spec{
			Name: fmt.Sprintf("nginx:soak-%d", i), Files: map[string][]byte{"/usr/share/nginx/html/index.html": []byte("soak")},
		})
	}
	return s
}

// soakArguments are those of the managers. No other program provides certificates here.
func soakArguments() []string {
	return []string{
		"--feature-gates=AllAlpha=true,AllBeta=true,EnableExternalCerts=false", "--nodeimage-creation-delay=1s",
	}
}

// applySamples applies the samples of the kinds whose objects stay, and waits until their pods are ready. The samples
// of jobs and requests are applied again and again later.
func (s *soak) applySamples(t *testing.T) {
	t.Helper()
	// A SidecarSet and the objects that place pods come before the pods.
	for _, name := range []string{
		"sidecarset", "deployment", "cloneset", "podunavailablebudget", "statefulset", "daemonset", "uniteddeployment",
		"workloadspread", "persistentpodstate",
		"podprobemarker", "resourcedistribution", "advancedcronjob", "pod",
	} {
		if err := s.apply(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_, _ = s.Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "--wait=false",
			"resourcedistribution/registry", "namespace/vault")
	})
}

// apply applies a sample in the namespace of the soak.
func (s *soak) apply(ctx context.Context, name string) error {
	text, err := os.ReadFile("../../config/samples/" + name + ".yaml")
	if err != nil {
		return err
	}
	changed := strings.NewReplacer(
		// The samples name the zones of two clusters.
		"zone-1", "zone-a", "zone-2", "zone-b", "zone-3", "zone-c",
		// The images of the test nodes are busybox under the names of the samples.
		"[nginx, -v]", `["true"]`,
	).Replace(string(text))
	file, err := os.CreateTemp("", "sample-*.yaml")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(changed); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return s.try(ctx, func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "apply", "-n", s.namespace, "-f", file.Name())
		if err != nil {
			return fmt.Errorf("apply %s: %w\n%s", name, err, said)
		}
		return nil
	})
}

// pauseCrons stops and starts the AdvancedCronJobs, which would not let the deployment rest.
func (s *soak) pauseCrons(t *testing.T, paused bool) {
	t.Helper()
	for _, name := range []string{"report", "cleanup"} {
		if err := s.patch(t.Context(), advancedCronJob, name, fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)); err != nil {
			t.Fatal(err)
		}
	}
}

// rest waits until all pods of the soak are ready and no job is left, then for the connections and the caches of a
// burst to end, and measures.
func (s *soak) rest(t *testing.T, moment string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), turnTime)
	defer stop()
	if err := until(ctx, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := s.Client.List(ctx, &pods, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			done := pod.Status.Phase == corev1.PodSucceeded
			if !done && (!ready(pod) || pod.DeletionTimestamp != nil) {
				return fmt.Errorf("pod %s is %s, ready: %t", pod.Name, pod.Status.Phase, ready(pod))
			}
		}
		return s.ready(ctx)
	}); err != nil {
		s.report.fail("%s: no rest: %v", moment, err)
	}
	before := s.measure(t.Context(), moment+", before a pause")
	quiet := min(2*time.Minute, s.took/4)
	pause(t.Context(), quiet)
	s.report.quiet(moment, quiet, before, s.measure(t.Context(), moment))
}

// pause waits for a time, and reports false where the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// between draws a duration.
func (s *soak) between(least, most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

// draw draws a number below n.
func (s *soak) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

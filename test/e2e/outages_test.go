//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var outageTime = flag.Duration("outage", 0, "how long TestOutages keeps the API server away; 0 skips the test")

// TestOutages shows what users see when the control plane or the managers have a bad day, in the middle of rollouts of
// three kinds: the rollouts end afterwards, no pod is recreated, and no container restarts but for its new image.
func TestOutages(t *testing.T) {
	if *outageTime == 0 {
		t.Skip("takes minutes: run make outages")
	}
	s := newSoak(t)
	for _, name := range []string{"cloneset", "podunavailablebudget", "statefulset", "daemonset"} {
		if err := s.apply(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s.roll(t)()
	t.Run("certificates expired while no manager ran", s.testExpiredCertificates)
	t.Run("the leader is partitioned", s.testPartition)
	t.Run("the clocks of replicas are an hour apart", s.testClocks)
	t.Run("the API server is away", s.testAPIServerAway)
}

// rolled are the pods of a workload whose image changes.
type rolled struct {
	kind      schema.GroupVersionKind
	name, app string
	want      map[string]int64
	before    map[string]*corev1.Pod
}

func rollouts() []*rolled {
	each := map[string]int64{"desiredNumberScheduled": nodes, "updatedNumberScheduled": nodes, "numberReady": nodes}
	return []*rolled{
		{
			kind: cloneSet,
			name: "web",
			app:  "web",
			want: map[string]int64{"replicas": 5, "readyReplicas": 5, "updatedReadyReplicas": 5},
		},
		{
			kind: kindOf(ours, "StatefulSet"),
			name: "db",
			app:  "db",
			want: map[string]int64{"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3},
		},
		{kind: kindOf(ours, "DaemonSet"), name: "agent", app: "agent", want: each},
	}
}

// roll gives three workloads their next image. What it returns waits for the end of the rollouts, and fails the test
// for a pod that was recreated, and for a container that restarted more than once.
func (s *soak) roll(t *testing.T) (wait func()) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), *outageTime+2*turnTime)
	t.Cleanup(stop)
	all := rollouts()
	for _, r := range all {
		if err := s.settles(ctx, r.kind, r.name, r.want); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.before, err = s.podsOf(ctx, r.app); err != nil {
			t.Fatal(err)
		}
	}
	begin, failures := time.Now(), make([]error, len(all))
	var running sync.WaitGroup
	for i, r := range all {
		if err := s.flip(ctx, r.kind, r.name, []string{"spec", "template", "spec"}); err != nil {
			t.Fatal(err)
		}
		running.Add(1)
		go func() {
			defer running.Done()

			failures[i] = errors.Join(s.settles(ctx, r.kind, r.name, r.want), s.kept(ctx, r.app, r.before))
		}()
	}
	return func() {
		t.Helper()
		running.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Error(err)
			return
		}
		for _, r := range all {
			s.restartedOnce(t, r)
		}
		t.Logf("all rollouts ended %s after they began", time.Since(begin).Round(time.Second))
	}
}

// restartedOnce reports containers of updated pods that restarted more than once.
func (s *soak) restartedOnce(t *testing.T, r *rolled) {
	t.Helper()
	after, err := s.podsOf(t.Context(), r.app)
	if err != nil {
		t.Error(err)
		return
	}
	for name, pod := range r.before {
		for container, was := range statuses(pod) {
			if now := statuses(after[name])[container]; now.RestartCount > was.RestartCount+1 {
				t.Errorf("%s %s: container %s of %s restarted %d times",
					r.kind.Kind, r.name, container, name, now.RestartCount-was.RestartCount)
			}
		}
	}
}

// The API server answers no request. Containers run on, and rollouts continue when the API server is back.
func (s *soak) testAPIServerAway(t *testing.T) {
	wait := s.roll(t)
	resume := s.StopAPIServer(t)
	pause(t.Context(), *outageTime)
	resume()
	back := time.Now()
	eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
	t.Logf("the managers and daemons are ready %s after the API server is back", time.Since(back).Round(time.Second))
	wait()
	s.logRestarts(t)
}

// The leader reaches no API server. The other replica leads, and the rollouts go on without the old leader, which ends.
func (s *soak) testPartition(t *testing.T) {
	wait := s.roll(t)
	old := s.leader(t)
	var pod corev1.Pod
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: old}, &pod); err != nil {
		t.Fatal(err)
	}
	heal, begin := s.Partition(t, pod.Status.PodIP), time.Now()
	eventually(t, func(ctx context.Context) error {
		if now, _, _ := strings.Cut(s.holder(ctx, t), "_"); now == "" || now == old {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
	t.Logf("another replica leads %s after the partition", time.Since(begin).Round(time.Second))
	wait()
	heal()
	eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
	s.logRestarts(t)
}

// The certificate and its authority have ended while no replica ran. The first replica makes new ones, and webhooks
// answer.
func (s *soak) testExpiredCertificates(t *testing.T) {
	s.scale(t, 0)
	s.managers[managerName] = 0
	eventually(t, func(ctx context.Context) error { return s.ready(ctx) })
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: system, Name: "kruise-webhook-certs"}
	if err := s.Client.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	maps.Copy(secret.Data, expired(t))
	if err := s.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.scale(t, 2)
	s.managers[managerName] = 2
	eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
	t.Logf("both replicas are ready %s after their start", time.Since(begin).Round(time.Second))
	if err := s.converts(t.Context()); err != nil {
		t.Error(err)
	}
	s.roll(t)()
}

// expired is what the Secret holds after the end of the certificate and of its authority.
func expired(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := "kruise-webhook-service." + system + ".svc"
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	secret := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	return map[string][]byte{
		"ca-cert.pem": cert, "ca-key.pem": secret, "cert.pem": cert, "key.pem": secret, "tls.crt": cert, "tls.key": secret,
	}
}

// One replica is an hour ahead of the other. Each of them leads a rollout, and API servers trust what each of them
// makes.
func (s *soak) testClocks(t *testing.T) {
	var d appsv1.Deployment
	if err := s.Client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: managerName}, &d); err != nil {
		t.Fatal(err)
	}
	ahead := beside(&d, pushFrom(t, s.deployed, "../..", "-overlay", hourAhead(t)))
	s.start(t, ahead)
	for range 3 {
		leader := s.leader(t)
		t.Logf("%s leads", leader)
		s.roll(t)()
		if err := s.Client.Delete(t.Context(), &corev1.Secret{
			ObjectMeta: objectMeta(system, "kruise-webhook-certs"),
		}); err != nil {
			t.Fatal(err)
		}
		s.killProcess(t, leader, "kruise-manager")
		s.remove(t, leader)
		eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
		if err := s.converts(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Client.Delete(t.Context(), ahead, client.PropagationPolicy("Foreground")); err != nil {
		t.Fatal(err)
	}
	s.scale(t, 2)
	s.managers = map[string]int32{managerName: 2}
	eventually(t, func(ctx context.Context) error { return s.complete(ctx, t) })
}

// hourAhead is a file for the option -overlay of go build: programs take the time for an hour later.
func hourAhead(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if bytes.Count(text, []byte(reads)) != 1 {
		t.Fatalf("%s does not read the time as expected", path)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed,
		bytes.Replace(text, []byte(reads), []byte(reads+"\tsec += 3600\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// logRestarts logs the restarts of managers and daemons, which end when they cannot lead any more.
func (s *soak) logRestarts(t *testing.T) {
	t.Helper()
	for _, pod := range append(s.serving(t), s.daemons(t)...) {
		if len(pod.Status.ContainerStatuses) > 0 {
			t.Logf("%s restarted %d times", pod.Name, pod.Status.ContainerStatuses[0].RestartCount)
		}
	}
}

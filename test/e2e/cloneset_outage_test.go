//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A manager that is away holds up rollouts, and nothing else: pods serve, and new ones come from what makes them.
func (m *deployed) testNoReplica(t *testing.T) {
	outage, deletions, disruptions := m.newPodOutage(t), m.newDeletionOutage(t), m.newBudgetOutage(t)
	s := m.newSet(t, "web")
	s.create(t, 4, nil)
	before := s.pods(t)
	s.roll(t)
	s.waitFor(t, "the middle of the rollout", during(t, before, s.middle))
	m.scale(t, 0)
	for _, pod := range m.pods(t) {
		m.killProcess(t, pod.Name, "kruise-manager")
		m.remove(t, pod.Name)
	}
	eventually(t, func(context.Context) error {
		if left := m.pods(t); len(left) > 0 {
			return fmt.Errorf("%d replicas are still there", len(left))
		}
		return nil
	})
	plain := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "plain"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{{Name: "main", Image: s.images["helper"].Name}},
		},
	}
	if err := m.Client.Create(t.Context(), plain); err != nil {
		t.Errorf("nobody selects the pod, so nobody is to be asked: %v", err)
	}
	s.waitFor(t, "the plain pod, while the others serve", during(t, before, func(l look) error {
		for _, pod := range l.pods {
			if ready(pod) {
				serves(t, pod)
			}
		}
		if err := m.Client.Get(t.Context(), client.ObjectKeyFromObject(plain), plain); err != nil {
			return err
		}
		if !ready(plain) {
			return fmt.Errorf("it is %s", plain.Status.Phase)
		}
		return nil
	}))
	outage.away(t)
	deletions.away(t)
	disruptions.away(t)
	if left := 4 - s.running(s.pods(t), "new"); left == 0 {
		t.Error("the rollout ended without a manager")
	}
	m.scale(t, 2)
	s.waitFor(t, "the end of the rollout", during(t, before, s.all("new", 1)))
	sameButFor(t, "main", before, s.pods(t))
	eventually(t, m.ready)
	outage.back(t)
	disruptions.back(t)
}

// middle says what keeps a rollout from being half done, with a pod on its way.
func (s *theSet) middle(l look) error {
	if n := s.running(l.pods, "new"); n < len(l.pods)/3 || serving(l.pods) == len(l.pods) {
		return fmt.Errorf("%d run the new image, %d are ready", n, serving(l.pods))
	}
	if s.all("new", 1)(l) == nil {
		return fmt.Errorf("it has ended")
	}
	return nil
}

// during adds to a check what holds at every look: these pods and no others, of which one may be unready.
func during(t *testing.T, before map[string]*corev1.Pod, check func(look) error) func(look) error {
	t.Helper()
	return func(l look) error {
		if len(l.pods) != len(before) || serving(l.pods) < len(before)-1 {
			t.Fatalf("at %s: %d pods, of which %d are ready, want %d and at most one less", time.Now().Format(time.StampMilli),
				len(l.pods), serving(l.pods), len(before))
		}
		for name, pod := range l.pods {
			if was := before[name]; was == nil || was.UID != pod.UID {
				t.Fatalf("%s was not there before", name)
			}
			if n := statuses(pod)["main"].RestartCount; n > 1 {
				t.Fatalf("%s: its main container restarted %d times", name, n)
			}
		}
		return check(l)
	}
}

// serves asks a pod for its page.
func serves(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Errorf("%s, which is ready: %v", pod.Name, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	if page, err := io.ReadAll(response.Body); err != nil || !strings.Contains("old new", string(page)) || len(page) != 3 {
		t.Errorf("%s, which is ready, serves %q, %v", pod.Name, page, err)
	}
}

// killProcess ends the program of a pod without a chance to say goodbye. The machine sees the processes of all of its
// nodes.
func (m *deployed) killProcess(t *testing.T, name, program string) {
	t.Helper()
	pod := &corev1.Pod{}
	if err := m.Client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, dir := range processes {
		// What ends meanwhile cannot be read, and is not looked for.
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !strings.Contains(string(groups), string(pod.UID)) || !strings.HasPrefix(string(command), "/"+program+"\x00") {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed != 1 {
		t.Fatalf("%d processes of %s were killed, want 1", killed, name)
	}
}

// remove takes a replica off at once.
func (m *deployed) remove(t *testing.T, name string) {
	t.Helper()
	err := m.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}},
		client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func (m *deployed) scale(t *testing.T, replicas int) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: managerName}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := m.Client.Patch(t.Context(), d, patch); err != nil {
		t.Fatal(err)
	}
}

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/cluster/image"
)

// mostMemory of a replica during the attacks, and mostCPU of all replicas.
const mostMemory, mostCPU = 400 << 20, 40 * time.Second

// testHostileTenant has a user of one namespace, its pods, and the token of another node's daemon attack the
// deployment.
func (m *deployed) testHostileTenant(t *testing.T) {
	program, victim := buildAttacker(t), m.newRecreation(t, "node-1", nil, "a")
	before := m.figures(t)
	began := time.Now()
	attacker := m.newTenant(t)
	pods := attacker.attack(t, m.attackerImage(t, program))
	m.admitDuringSilence(t)
	attacker.admitDuringCrowd(t)
	attacker.oversize(t)
	attacker.preempt(t)
	attacker.flip(t)
	refused := attacker.flood(t)
	m.otherNode(t, victim)
	m.attackFromNode(t, program)
	for _, pod := range pods {
		attacker.report(t, pod)
	}
	after := m.figures(t)
	t.Logf("%s of attacks; the tenant's objects: %s", time.Since(began).Round(time.Second), refused)
	var cpu time.Duration
	for name, now := range after {
		was, same := before[name]
		if !same {
			t.Errorf("replica %s is new", name)
		}
		if now.restarts != was.restarts {
			t.Errorf("replica %s was restarted", name)
		}
		cpu += now.cpu - was.cpu
		t.Logf("replica %s: %d MiB, before %d MiB; CPU %s",
			name, now.memory>>20, was.memory>>20, (now.cpu - was.cpu).Round(time.Millisecond))
		if now.memory > mostMemory {
			t.Errorf("replica %s has %d MiB, want at most %d", name, now.memory>>20, mostMemory>>20)
		}
	}
	if cpu > mostCPU {
		t.Errorf("replicas took %s of CPU, want at most %s", cpu, mostCPU)
	}
	now := victim.pod(t)
	if now.UID != victim.was.UID || now.DeletionTimestamp != nil || now.Status.ContainerStatuses[0].RestartCount != 0 ||
		len(now.Labels) != len(victim.was.Labels) {
		t.Errorf("the pod of another tenant has changed: %+v %+v", now.ObjectMeta, now.Status.ContainerStatuses)
	}
	eventually(t, func(ctx context.Context) error { return m.ready(ctx) })
}

// serving are the replicas that are to stay.
func (m *deployed) serving(t *testing.T) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(m.pods(t), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// figure of a replica.
type figure struct {
	memory   int64
	cpu      time.Duration
	restarts int32
}

func (m *deployed) figures(t *testing.T) map[string]figure {
	t.Helper()
	all := map[string]figure{}
	for _, pod := range m.serving(t) {
		metrics, err := m.Kubectl(t.Context(), "get", "--raw",
			"/api/v1/namespaces/"+system+"/pods/"+pod.Name+":8080/proxy/metrics")
		if err != nil {
			t.Fatal(err)
		}
		value := func(name string) float64 {
			_, rest, _ := strings.Cut(metrics, "\n"+name+" ")
			text, _, _ := strings.Cut(rest, "\n")
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s of %s: %v", name, pod.Name, err)
			}
			return n
		}
		all[pod.Name] = figure{
			int64(value("process_resident_memory_bytes")),
			time.Duration(value("process_cpu_seconds_total") * float64(time.Second)),
			pod.Status.ContainerStatuses[0].RestartCount,
		}
	}
	return all
}

// buildAttacker compiles the program of the attacks, and returns its path.
func buildAttacker(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "attacker")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./attacker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build attacker: %v\n%s", err, out)
	}
	return program
}

// attackerImage pushes an image of the program of the attacks.
func (m *deployed) attackerImage(t *testing.T, program string) image.Image {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	spec := image.Program("attacker", content)
	spec.Name = "e2e/attacker:1"
	return m.Push(t, spec)
}

// tenant may create every namespaced kind of ours in one namespace, and pods.
type tenant struct {
	*deployed
	namespace string
	own       client.Client
}

func (m *deployed) newTenant(t *testing.T) *tenant {
	t.Helper()
	a := &tenant{deployed: m, namespace: m.Namespace(t)}
	meta := metav1.ObjectMeta{Namespace: a.namespace, Name: "tenant"}
	verbs := []string{"get", "list", "create", "update", "patch", "delete"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps.kruise.io", "policy.kruise.io"}, Resources: []string{"*"}, Verbs: verbs},
			{APIGroups: []string{""}, Resources: []string{"pods", "configmaps", "secrets"}, Verbs: verbs},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "tenant"}},
		},
	} {
		if err := m.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	a.own = m.withToken(t, types.NamespacedName{Namespace: a.namespace, Name: "tenant"}, nil)
	return a
}

// withToken is a client of an account, whose token is bound to a pod unless that is nil.
func (m *deployed) withToken(t *testing.T, account types.NamespacedName, pod *corev1.Pod) client.Client {
	t.Helper()
	all, err := kubernetes.NewForConfig(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	token, err := all.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name,
		request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rc := rest.AnonymousClientConfig(m.Config)
	rc.BearerToken, rc.QPS, rc.WarningHandler = token.Status.Token, -1, rest.NoWarnings{}
	own, err := client.New(rc, client.Options{Scheme: m.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// attack starts pods that attack both replicas from two nodes.
func (a *tenant) attack(t *testing.T, program image.Image) []string {
	t.Helper()
	var addresses, names []string
	for _, pod := range a.serving(t) {
		addresses = append(addresses, pod.Status.PodIP+":9876")
	}
	for _, node := range []string{"node-1", "node-2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "attacker-" + node}}
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers = []corev1.Container{{
			Name: "main", Image: program.Name, Args: addresses, Env: []corev1.EnvVar{{Name: "SILENCE", Value: "1"}},
		}}
		if err := a.own.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		names = append(names, pod.Name)
	}
	return names
}

// report waits for a pod that attacks, and reads what it got.
func (a *tenant) report(t *testing.T, name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		var pod corev1.Pod
		if err := a.own.Get(ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, &pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("%s is %s", name, pod.Status.Phase)
		}
		return nil
	})
	said, err := a.Kubectl(t.Context(), "logs", "-n", a.namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", name, said)
	if n := strings.Count(said, "silence: 512 held"); n != 2 {
		t.Errorf("%s: connections were held to %d of 2 replicas", name, n)
	}
	if n := strings.Count(said, "stall: 150 of 150 closed"); n != 2 {
		t.Errorf("%s: stalled requests were ended by %d of 2 replicas", name, n)
	}
}

// manyNames are n names of sets, all different: equal ones cost an index no more than one.
func manyNames(n int) string {
	var names strings.Builder
	for i := range n {
		fmt.Fprintf(&names, "n%04x,", i)
	}
	return names.String()
}

// flood creates objects of which many are refused, and returns how many were.
func (a *tenant) flood(t *testing.T) string {
	t.Helper()
	refused, created := 0, 0
	try := func(o client.Object) {
		switch err := a.own.Create(t.Context(), o); {
		case err == nil:
			created++
		// the review is too large
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err),
			apierrors.IsRequestEntityTooLargeError(err), strings.Contains(err.Error(), "status code 413"):
			refused++
		default:
			t.Errorf("create %T: %v", o, err)
		}
	}
	for i := range 40 {
		meta := metav1.ObjectMeta{Namespace: a.namespace, Name: fmt.Sprintf("a-%d", i)}
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: meta}
		request.Spec.PodName, request.Spec.Containers = "pod", []v1beta1.ContainerRecreateRequestContainer{{Name: "a"}}
		try(request) // the pod is in another namespace
		hostile := &corev1.Pod{ObjectMeta: *meta.DeepCopy()}
		hostile.Annotations = map[string]string{
			"kruise.io/sidecarset-hash": "[{", "apps.kruise.io/runtime-containers-meta": strings.Repeat("{", 100_000),
			"apps.kruise.io/container-launch-priority": "Ordered", "kruise.io/sidecarset-injected-list": manyNames(25_000),
		}
		hostile.Spec.Containers = []corev1.Container{{Name: "a", Image: "nowhere.example.com/a:1", Env: []corev1.EnvVar{{
			Name: "KRUISE_CONTAINER_PRIORITY", Value: strconv.Itoa(i),
		}}}}
		hostile.Spec.NodeSelector = map[string]string{"no": "such-node"}
		try(hostile)
		set := &v1beta1.CloneSet{ObjectMeta: meta}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": meta.Name}}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		set.Spec.Template.Spec = *hostile.Spec.DeepCopy()
		if i%2 == 0 {
			set.Spec.ScaleStrategy.PodsToDelete = make([]string, 300*i)
		}
		try(set)
	}
	// Every namespaced kind, with a spec that fits none.
	for _, kind := range []string{
		"apps/AdvancedCronJob", "apps/BroadcastJob", "apps/CloneSet", "apps/ContainerRecreateRequest", "apps/DaemonSet",
		"apps/ImageListPullJob",
		"apps/ImagePullJob", "apps/PersistentPodState", "apps/StatefulSet", "apps/UnitedDeployment", "apps/WorkloadSpread",
		"policy/PodUnavailableBudget",
	} {
		group, kind, _ := strings.Cut(kind, "/")
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"selector":         map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template":         map[string]any{"spec": map[string]any{"containers": []any{nil}}},
			"image":            strings.Repeat("a", 10_000),
			"images":           []any{"a:1"},
			"completionPolicy": map[string]any{"type": "Never"},
			"podName":          "../" + a.namespace,
			"replicas":         int64(-1),
			"containers":       []any{map[string]any{"name": ""}},
			"parallelism":      "-5%",
		}}}
		o.SetAPIVersion(group + ".kruise.io/v1beta1")
		o.SetKind(kind)
		o.SetNamespace(a.namespace)
		o.SetName("junk")
		try(o)
	}
	return fmt.Sprintf("%d created, %d refused", created, refused)
}

// otherNode uses the token of the daemon on node-2 on objects of node-1.
func (m *deployed) otherNode(t *testing.T, victim *recreation) {
	t.Helper()
	var token client.Client
	for _, pod := range m.daemons(t) {
		if pod.Spec.NodeName == "node-2" {
			token = m.withToken(t, types.NamespacedName{Namespace: system, Name: "kruise-daemon"}, &pod)
		}
	}
	for why, body := range map[string]string{
		"a label":       `{"metadata":{"labels":{"apps.kruise.io/specified-delete":"true"}}}`,
		"an annotation": `{"metadata":{"annotations":{"apps.kruise.io/runtime-containers-meta":"{}"}}}`,
		"a condition":   `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`,
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "pod"}}
		err := token.Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(body)))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of this node") {
			t.Errorf("the daemon of another node writes %s: %v", why, err)
		}
	}
	node := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	err := token.Status().Patch(t.Context(), node,
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"desired":7}}`)))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of this node") {
		t.Errorf("the daemon of another node writes a NodeImage: %v", err)
	}
}

// attackFromNode attacks both replicas from outside of the pods, while objects are written.
func (m *deployed) attackFromNode(t *testing.T, program string) {
	t.Helper()
	said, replicas := make(chan string), m.serving(t)
	for _, pod := range replicas {
		go func() {
			out, err := exec.CommandContext(t.Context(), program, pod.Status.PodIP+":9876").CombinedOutput()
			said <- fmt.Sprintf("%s: %s%v", pod.Name, out, err)
		}()
	}
	for range replicas {
		longest, done := time.Duration(0), ""
		for done == "" {
			longest = max(longest, m.write(t, "an attack"))
			select {
			case done = <-said:
			default:
			}
		}
		t.Logf("from a node, meanwhile a CloneSet took at most %s:\n%s", longest.Round(time.Millisecond), done)
		if !strings.Contains(done, "stall: 150 of 150 closed") ||
			!strings.Contains(done, `the body must have at most 7340032 bytes`) {
			t.Error("the replica did not end stalled requests and an endless body")
		}
	}
}

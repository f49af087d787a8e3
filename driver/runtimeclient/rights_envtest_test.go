//go:build envtest

package runtimeclient_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/test/standin"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// rolloutPage has the table of the rights of a rollout.
const rolloutPage = "../../docs/coexistence.md"

// A user with the rights of the table, and no others, creates, updates, resizes, rolls back and evicts pods, and needs
// each of these rights.
func TestRightsOfRollout(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	o := newOperator(t, c)
	o.rollOut("app:1", 3)
	o.rollOut("app:2", 3)
	o.rollOut("app:1", 3) // a rollback, to a revision that is stored
	o.rollOut("app:3", 3) // a revision too many
	o.rollOut("app:4", 3)
	o.resize()
	o.lose()
	o.in.Evict = true
	o.rollOut("app:4", 1)
	o.in.Evict = false
	o.rollOut("app:4", 0)

	var want []string
	for _, rule := range tableOfRights(t) {
		for _, verb := range rule.Verbs {
			want = append(want, rule.APIGroups[0]+" "+rule.Resources[0]+" "+verb)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, o.rights.used()); diff != "" {
		t.Errorf("%s has other rights than the rollout uses (-table +used):\n%s", rolloutPage, diff)
	}
}

// tableOfRights reads the rows "| group | resource | verbs | ... |" of the section about rollouts.
func tableOfRights(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	page, err := os.ReadFile(rolloutPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### A rollout\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var rules []rbacv1.PolicyRule
	row := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| `([^`]*)` \\| ([a-z, ]+) \\|")
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{strings.Trim(m[1], `"`)}, Resources: []string{m[2]}, Verbs: strings.Split(m[3], ", "),
		})
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no table of rights", rolloutPage)
	}
	return rules
}

// operator rolls pods out with the rights of a user.
type operator struct {
	*testing.T

	client    client.Client
	live      client.Reader
	rights    *rights
	in        workload.Input
	pods      *ledger.Ledger[*corev1.Pod]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	owner     *corev1.ConfigMap
	current   string
	// later is how far the clock of the ledger is ahead.
	later time.Duration
}

func newOperator(t *testing.T, c *cluster.Cluster) *operator {
	t.Helper()
	namespace := c.Namespace(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "operator"}
	for _, object := range []client.Object{
		owner, &rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: tableOfRights(t)},
		&rbacv1.RoleBinding{
			ObjectMeta: *meta.DeepCopy(), Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: namespace}},
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: meta.Name},
		},
	} {
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	kubelet := start(t, c.Config, namespace)
	if err := (&standin.Kubelet{Client: kubelet.GetClient(), Namespace: namespace, Node: "node-1"}).SetupWithManager(
		kubelet); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: namespace, Groups: []string{"system:authenticated"}}
	used := &rights{all: map[string]bool{}}
	config.Wrap(used.wrap)
	mgr := start(t, config, namespace)
	o := &operator{
		T: t, client: mgr.GetClient(), live: mgr.GetAPIReader(), rights: used, owner: owner,
		revisions: ledger.New[*appsv1.ControllerRevision](mgr.GetAPIReader(), time.Now),
	}
	o.pods = ledger.New[*corev1.Pod](o.live, func() time.Time { return time.Now().Add(o.later) })
	return o
}

// start starts a manager whose cache has one namespace. It ends with the test.
func start(t *testing.T, config *rest.Config, namespace string) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return mgr
}

// rollOut brings the pods to a template and a number.
func (o *operator) rollOut(image string, replicas int32) {
	o.Helper()
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}}}
	var waits error
	if err := wait.PollUntilContextTimeout(o.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var err error
			waits, err = o.pass(ctx, template, replicas)
			return waits == nil, err
		}); err != nil {
		o.Fatal(errors.Join(err, waits))
	}
}

// lose has the ledger look for a pod that was created, and that the cache does not show in time.
func (o *operator) lose() {
	o.Helper()
	var pods corev1.PodList
	err := o.client.List(o.Context(), &pods, client.InNamespace(o.owner.Namespace))
	if err != nil || len(pods.Items) == 0 {
		o.Fatal(err, len(pods.Items))
	}
	key := client.ObjectKeyFromObject(o.owner)
	o.pods.Created(key, &pods.Items[0])
	o.later = 2 * ledger.Patience
	defer func() { o.later = 0 }()
	if found, _, err := o.pods.Overlay(o.Context(), key, nil); err != nil || len(found) != 1 {
		o.Errorf("%d pods, %v", len(found), err)
	}
}

// resize sends the write of a resize. The node of the test supports none, which the API server finds after it has
// authorized the user.
func (o *operator) resize() {
	o.Helper()
	var pods corev1.PodList
	err := o.client.List(o.Context(), &pods, client.InNamespace(o.owner.Namespace))
	if err != nil || len(pods.Items) == 0 {
		o.Fatal(err, len(pods.Items))
	}
	_, err = runtimeclient.Send(o.Context(), o.client, &write.Write{
		Verb: write.Patch, Object: &pods.Items[0], Subresource: write.Resize, Type: types.StrategicMergePatchType,
		Body: write.Bytes(`{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"1"}}}]}}`),
	})
	if !apierrors.IsInvalid(err) {
		o.Errorf("resize: %v, want that the pod is invalid", err)
	}
}

// pass makes a pass, and returns what it waits for.
func (o *operator) pass(ctx context.Context, template *corev1.PodTemplateSpec, replicas int32) (waits, err error) {
	key, of := client.ObjectKeyFromObject(o.owner), client.MatchingLabels{"web": o.owner.Name}
	var podList corev1.PodList
	var revisionList appsv1.ControllerRevisionList
	data, err := revision.Encode(template)
	if err := errors.Join(err, o.client.List(ctx, &podList, client.InNamespace(o.owner.Namespace), of),
		o.client.List(ctx, &revisionList, client.InNamespace(o.owner.Namespace), of)); err != nil {
		return nil, err
	}
	pods, _, err := o.pods.Overlay(ctx, key, revision.ControlledBy(o.owner, podList.Items))
	revisions, _, failed := o.revisions.Overlay(ctx, key, revision.ControlledBy(o.owner, revisionList.Items))
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	in := o.in
	in.Owner = workload.OwnedBy(o.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"), of)
	in.Scale = scale.Input{Now: time.Now(), Limits: scale.Limits{Replicas: replicas, MaxUnavailable: 3}}
	in.Instances, in.Strategy = workload.Pods(pods), workload.InPlaceIfPossible
	in.Build = func(creations []workload.Creation) (all [][]write.Object, err error) {
		for _, creation := range creations {
			pod, err := in.Pod(creation)
			if err != nil {
				return nil, err
			}
			pod.Name = pod.GenerateName + rand.String(5) // a lost answer is looked up by the name
			all = append(all, []write.Object{pod})
		}
		return all, nil
	}
	history := workload.History{Data: data, Stored: revisions, Current: o.current, Limit: 1}
	if err := in.SetHistory(history); err != nil {
		return nil, err
	}
	pass, err := workload.Plan(in)
	if err != nil {
		return nil, err
	}
	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(o.client, o.live), Owner: key, Ledgers: []driver.Recorder{o.pods, o.revisions},
	})
	o.current, _ = pass.Promote(o.current)
	if counts := pass.Counts(); err != nil || counts.UpdatedAvailable != replicas || int32(len(pods)) != replicas {
		return fmt.Errorf("%d pods, %+v, %v: %w", len(pods), counts, pass.Notes(), errors.Join(err, errWaits)), nil
	}
	return nil, nil
}

var errWaits = errors.New("the rollout is not complete")

// rights are those that the requests of a client need.
type rights struct {
	mu   sync.Mutex
	all  map[string]bool
	lost bool
}

// wrap records requests. The answer to the first creation of a pod is lost, so that the pod is read past the cache.
func (r *rights) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(q *http.Request) (*http.Response, error) {
		right := rightOf(q)
		r.mu.Lock()
		lose := right == " pods create" && !r.lost
		r.lost = r.lost || lose
		if right != "" {
			r.all[right] = true
		}
		r.mu.Unlock()
		answer, err := next.RoundTrip(q)
		if lose && err == nil {
			_ = answer.Body.Close()
			return nil, errors.New("the answer is lost")
		}
		return answer, err
	})
}

func (r *rights) used() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.all))
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// rightOf returns group, resource and verb of a request for objects of a namespace; empty for others.
func rightOf(q *http.Request) string {
	m := regexp.MustCompile(`^/(?:api|apis/([^/]+))/[^/]+/namespaces/[^/]+/([^/]+)(?:/[^/]+(?:/([^/]+))?)?$`).
		FindStringSubmatch(q.URL.Path)
	if m == nil {
		return ""
	}
	of := m[2]
	if m[3] != "" {
		of += "/" + m[3]
	}
	verb := map[string]string{
		"POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get", "PUT": "update",
	}[q.Method]
	if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/"+m[2]) {
		if verb = "list"; q.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	return m[1] + " " + of + " " + verb
}

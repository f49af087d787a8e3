//go:build envtest

package pod_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// labelled is a set for the pods with a label.
func labelled(t *testing.T, name, app, spec string) *appsv1beta1.SidecarSet {
	t.Helper()
	return newSet(t, name, fmt.Sprintf("{selector: {matchLabels: {app: %s}}, %s}", app, spec))
}

// asked is a pod with that label.
func asked(t *testing.T, namespace, app, metadata, spec string) *corev1.Pod {
	t.Helper()
	p := newPod(t, namespace, fmt.Sprintf("{metadata: {%s}, spec: {%s}}", metadata, spec))
	if p.Name == "" && p.GenerateName == "" {
		p.Name = app
	}
	metav1.SetMetaDataLabel(&p.ObjectMeta, "app", app)
	return p
}

// What pods become, as an API server stores them.
func testCases(t *testing.T, g *ground) {
	cases := maps.Clone(containers())
	maps.Copy(cases, variables())
	maps.Copy(cases, records())
	var sets []*appsv1beta1.SidecarSet
	for name, c := range cases {
		for i, spec := range c.sets {
			sets = append(sets, labelled(t, fmt.Sprintf("%s-%d", name, i), name, spec))
		}
	}
	g.have(t, concerned{}, sets...)
	namespace := g.Namespace(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := asked(t, namespace, name, c.metadata, c.spec)
			if err := g.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			same(t, c.why, c.want, c.look(p))
		})
	}
}

// What keeps a pod from being created is reported with the set, the field and the reason.
func testTold(t *testing.T, g *ground) {
	const log, unread = `containers: [{name: log, image: l}]`, `annotations: {kruise.io/sidecarset-hash: "[]"}`
	cases := map[string]struct {
		why            string
		metadata, spec string
		sets           []string
		says           []string
	}{
		"no-target": {
			"nothing has such a name", "", lone,
			[]string{strings.Replace(sized("sum", `limits: {cpu: cpu}`), ".*", "^x$", 1)},
			[]string{"sidecarset no-target-0", "spec.containers[0]", "targetContainersNameRegex", "^x$"},
		},
		"by-zero": {
			why:  "the set came while nobody judged it",
			spec: twins,
			sets: []string{sized("sum", `limits: {cpu: cpu/0}`)},
			says: []string{"sidecarset by-zero-0", "limits.cpu", "a non-zero divisor"},
		},
		"below-zero": {
			why:  "it depends on the pod",
			spec: twins,
			sets: []string{sized("sum", `requests: {cpu: cpu-2}`)},
			says: []string{"sidecarset below-zero-0", "requests.cpu", "at least 0"},
		},
		"too-large": {
			why:  "it depends on the pod",
			spec: twins,
			sets: []string{sized("sum", `limits: {memory: memory*1e9}`)},
			says: []string{"sidecarset too-large-0", "limits.memory", "2^63"},
		},
		"clash": {
			why:  "both sets are named",
			spec: lone,
			sets: []string{log, log},
			says: []string{"sidecarset clash-1", "sidecarset clash-0", "log"},
		},
		"other-kind": {
			why:  "the container of the pod is named",
			spec: strings.ReplaceAll(lone, "main", "log") + `, initContainers: [{name: init, image: i}]`,
			sets: []string{`initContainers: [{name: log, image: l}]`},
			says: []string{"sidecarset other-kind-0", "spec.initContainers[0]", "log"},
		},
		"no-empty": {
			why:  "there is nothing for the second",
			spec: lone,
			sets: []string{`containers: [{name: log, image: l, upgradeStrategy: {upgradeType: HotUpgrade}}]`},
			says: []string{"sidecarset no-empty-0", "hotUpgradeEmptyImage"},
		},
		"unread": {
			why:      "the annotation is named",
			metadata: unread,
			spec:     lone,
			sets:     []string{log},
			says:     []string{"annotation kruise.io/sidecarset-hash"},
		},
		"no-json": {
			why:      "the annotation is named",
			metadata: "annotations: {k: x}",
			spec:     lone,
			sets:     []string{log + `, patchPodMetadata: [{patchPolicy: MergePatchJson, annotations: {k: "{}"}}]`},
			says:     []string{"sidecarset no-json-0", "spec.patchPodMetadata[0]", "annotation k"},
		},
		"bad-share": {why: "nobody knows how many", spec: lone, sets: []string{
			log +
				`, updateStrategy: {partition: abc%}, injectionStrategy: {revision: {revisionName: bad-share-0-old, policy: Partial}}`,
		}, says: []string{"sidecarset bad-share-0", "spec.updateStrategy.partition", "abc%"}},
		"no-version": {
			why:  "there is no such history",
			spec: lone,
			sets: []string{log + `, injectionStrategy: {revision: {customVersion: v9, policy: Partial}}`},
			says: []string{"sidecarset no-version-0", "customVersion", "v9"},
		},
		"of-another": {
			why:  "it is of another set",
			spec: lone,
			sets: []string{log + `, injectionStrategy: {revision: {revisionName: bad-share-0-old}}`},
			says: []string{"sidecarset of-another-0", "revisionName", "bad-share-0-old"},
		},
		"no-priority": {
			why:  "the variable is named",
			spec: `containers: [{name: main, image: m, env: [{name: KRUISE_CONTAINER_PRIORITY, value: abc}]}, {name: b, image: b}]`,
			says: []string{"spec.containers[0].env[0].value", "abc"},
		},
		"no-container": {
			why:  "the API server says it as ever",
			spec: `restartPolicy: Never`,
			says: []string{"spec.containers", "Required value"},
		},
	}
	var sets []*appsv1beta1.SidecarSet
	for name, c := range cases {
		for i, spec := range c.sets {
			sets = append(sets, labelled(t, fmt.Sprintf("%s-%d", name, i), name, spec))
		}
	}
	g.history(t, "bad-share-0", "v1")
	g.have(t, concerned{Launch: true, Owned: true}, sets...)
	namespace := g.Namespace(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := g.Client.Create(t.Context(), asked(t, namespace, name, c.metadata, c.spec))
			refusedBy(t, err, http.StatusUnprocessableEntity, c.says...)
		})
	}
}

// history is a former revision of a set, with an image of its own, under the name of the set and -old.
func (g *ground) history(t *testing.T, set, version string) {
	t.Helper()
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.DefaultNamespace, Name: set + "-old", Labels: map[string]string{
			appsv1beta1.SidecarSetNameLabel: set, appsv1beta1.SidecarSetCustomVersionLabel: version,
		}},
		Revision: 1,
		Data: runtime.RawExtension{
			Raw: []byte(`{"spec":{"$patch":"replace","containers":[{"name":"log","image":"log:old"}],"initContainers":null}}`),
		},
	}
	if err := g.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Client.Delete(context.WithoutCancel(t.Context()), r) })
}

// Which pods get a former revision, and what they record of it.
func testHeldBack(t *testing.T, g *ground) {
	cases := map[string]struct {
		why, pin, update string
		labels           string
		former           bool
	}{
		"always": {
			why:    "all do, whatever is updated",
			pin:    "customVersion: v1, policy: Always",
			update: `selector: {matchLabels: {version: canary}}`,
			labels: "labels: {version: canary}",
			former: true,
		},
		"stable": {
			why:    "the selector does not mean it",
			pin:    "customVersion: v1, policy: Partial",
			update: `selector: {matchLabels: {version: canary}}`,
			labels: "labels: {version: stable}",
			former: true,
		},
		"canary": {
			why:    "the selector means it",
			pin:    "customVersion: v1, policy: Partial",
			update: `selector: {matchLabels: {version: canary}}`,
			labels: "labels: {version: canary}",
		},
		"all-of-them": {"100%", "revisionName: all-of-them-0-old, policy: Partial", `partition: 100%`, "", true},
		"none":        {"0%", "revisionName: none-0-old, policy: Partial", `partition: 0%`, "", false},
		"a-number":    {"a number of pods is no share", "customVersion: v1, policy: Partial", `partition: 100`, "", false},
		"stopped": {
			why:    "nothing new begins while updates are paused",
			pin:    "customVersion: v1, policy: Partial",
			update: `paused: true, partition: 0%`,
			former: true,
		},
	}
	var sets []*appsv1beta1.SidecarSet
	for name, c := range cases {
		g.history(t, name+"-0", "v1")
		sets = append(sets, labelled(t, name+"-0", name,
			fmt.Sprintf(`containers: [{name: log, image: "log:new"}], injectionStrategy: {revision: {%s}}, updateStrategy: {%s}`,
				c.pin, c.update)))
	}
	g.have(t, concerned{}, sets...)
	namespace := g.Namespace(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := []string{"main=m", "log=log:new", "list " + name + "-0", name + "-0 [log] " + name + "-0-now"}
			if c.former {
				want = []string{"main=m", "log=log:old", "list " + name + "-0", name + "-0 [log] " + name + "-0-old"}
			}
			p := asked(t, namespace, name, c.labels, lone)
			g.until(t, "the revision is not known", func(ctx context.Context) error {
				return g.Client.Create(ctx, p, client.DryRunAll)
			})
			same(t, c.why, want, append(order(p), told(p)...))
		})
	}
}

// A canary takes the place of its base where it is injected, and of nothing where it is not.
func testCanary(t *testing.T, g *ground) {
	of := func(base string, set *appsv1beta1.SidecarSet) *appsv1beta1.SidecarSet { return canary(set, base) }
	g.have(t, concerned{}, labelled(t, "base", "web", `containers: [{name: base, image: b}]`),
		of("base", labelled(t, "canary", "web", `containers: [{name: canary, image: c}]`)),
		labelled(t, "other-base", "db", `containers: [{name: base, image: b}]`), of("other-base",
			labelled(t, "paused-canary", "db", `containers: [{name: canary, image: c}], injectionStrategy: {paused: true}`)))
	namespace := g.Namespace(t)
	for app, want := range map[string][]string{
		"web": {"main=m", "canary=c", "list canary", "canary [canary] canary-now"},
		"db":  {"main=m", "base=b", "list other-base", "other-base [base] other-base-now"},
	} {
		p := asked(t, namespace, app, "", lone)
		if err := g.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		same(t, app, want, append(order(p), told(p)...))
	}
}

// A namespace that gets the label later has its pods injected from then on.
func testRelabelled(t *testing.T, g *ground) {
	g.have(t, concerned{}, newSet(t, "a", logs[:len(logs)-1]+`, namespaceSelector: {matchLabels: {relabelled: "yes"}}}`))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Namespace(t)}}
	p := newPod(t, namespace.Name, plain)
	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	same(t, "before", []string{"main=m"}, order(p))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"relabelled":"yes"}}}`))
	if err := g.Client.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	g.until(t, "a pod that is created again is not injected", func(ctx context.Context) error {
		again := newPod(t, namespace.Name, plain)
		if err := g.Client.Create(ctx, again, client.DryRunAll); err != nil {
			return err
		}
		if !slices.Equal(order(again), []string{"main=m", "log=log:1"}) {
			return errors.New(strings.Join(order(again), " "))
		}
		return nil
	})
}

// Containers that ask for an order, and those that do not.
func testOrdered(t *testing.T, g *ground) {
	const three = `containers: [{name: a, image: i%[1]s}, {name: b, image: i%[1]s}, {name: c, image: i%[1]s}]`
	asks := func(n string) string { return `, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "` + n + `"}]` }
	const ordered = `annotations: {apps.kruise.io/container-launch-priority: Ordered}`
	cases := map[string]struct {
		why, metadata, spec string
		want                []string
	}{
		"nothing-asked": {"nobody asks", "", fmt.Sprintf(three, ""), []string{"a=i", "b=i", "c=i"}},
		"in-order": {
			why:      "one after the other",
			metadata: ordered,
			spec:     fmt.Sprintf(three, ""),
			want:     []string{"a=i wait 0", "b=i wait -1", "c=i wait -2"},
		},
		"all-alike": {"they start at once", "", fmt.Sprintf(three, asks("5")), []string{"a=i", "b=i", "c=i"}},
		"order-and-asked": {
			why:      "the order counts",
			metadata: ordered,
			spec:     fmt.Sprintf(three, asks("5")),
			want:     []string{"a=i wait 0", "b=i wait -1", "c=i wait -2"},
		},
		"alone": {"there is none to wait for", ordered, lone, []string{"main=m"}},
		"by-a-set": {
			why:  "a set asks for it, and its own container waits as well",
			spec: lone,
			want: []string{"main=m wait 0", "log=l wait -1"},
		},
	}
	g.have(t, concerned{Launch: true}, labelled(t, "by-a-set-0", "by-a-set",
		`containers: [{name: log, image: l}], patchPodMetadata: [{annotations: {apps.kruise.io/container-launch-priority: Ordered}}]`))
	namespace := g.Namespace(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := asked(t, namespace, name, c.metadata, c.spec)
			if err := g.Client.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			same(t, c.why, c.want, describeTyped(t, p))
		})
	}
}

//go:build simulated

package dashboard_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// images is where pictures are written to.
var images = flag.String("images", "", "directory for pictures of the page")

const (
	web = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web, namespace: shop}
spec:
  replicas: 300
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 12}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "registry.example.com/shop/web:1.8.0"}]}
`
	others = `
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 10%}
---
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "registry.example.com/shop/db:14.2"}]}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: warm, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  probes:
  - name: cache
    containerName: app
    probe: {exec: {command: [test, -f, /tmp/warm]}}
    podConditionType: example.com/CacheWarm
    markerPolicy: [{state: Succeeded, labels: {warm: "yes"}}]
`
	pull = `
apiVersion: apps.kruise.io/v1beta1
kind: ImagePullJob
metadata: {name: web-2-0, namespace: shop}
spec: {image: "registry.example.com/shop/web:2.0.0", parallelism: 20, completionPolicy: {type: Always}}
`
	// hostile is what a tenant may write.
	hostile = `
apiVersion: v1
kind: Event
metadata: {name: hostile, namespace: shop}
type: Warning
reason: Markup
message: "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
involvedObject: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web, namespace: shop}
lastTimestamp: NOW
count: 1
`
)

func TestDashboard(t *testing.T) {
	chromium(t) // before the cluster
	g := newGround(t)
	g.retry(web)
	g.retry(others)
	g.kubectl(strings.Replace(hostile, "NOW", `"`+time.Now().UTC().Format(time.RFC3339)+`"`, 1), "create")
	g.until("all pods are ready", func(context.Context) error {
		ready, err := g.try("", "get", "cloneset", "web", "-n", "shop", "-o", "jsonpath={.status.readyReplicas}")
		if err == nil && ready != fmt.Sprint(pods) {
			err = fmt.Errorf("%q pods are ready", ready)
		}
		return err
	})
	g.dashboard("--write")
	b := newBrowser(t, g.url)
	b.scheme("light")
	b.run(chromedp.Navigate(g.url))
	b.until(`document.querySelectorAll('tbody tr').length === 2`)
	if at := eval[string](b, "location.href"); strings.Contains(at, "token") {
		t.Errorf("the token stays in the address: %s", at)
	}
	t.Run("keyboard", func(t *testing.T) { keyboard(t, b) })
	g.kubectl("", "delete", "event", "hostile", "-n", "shop")
	t.Run("writes", func(*testing.T) { writes(b) })
	t.Run("rollout", func(t *testing.T) { rollout(t, g, b) })
	t.Run("plan", func(*testing.T) { plan(b) })
	t.Run("pulls", func(*testing.T) { pulls(g, b) })
	t.Run("probes", func(*testing.T) { probes(g, b) })
	t.Run("every view", func(*testing.T) { everyView(b) })
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		t.Errorf("the console has %d problems: %q", len(b.problems), b.problems)
	}
	if len(b.foreign) > 0 {
		t.Errorf("requests to other hosts: %q", b.foreign)
	}
}

// focused describes what has the focus: by its name, which must be seen.
func focused(b *browser) string {
	b.t.Helper()
	return eval[string](b, `(() => {
		const a = document.activeElement;
		const name = a.getAttribute('aria-label') || a.labels?.[0]?.textContent || a.textContent.trim();
		const seen = getComputedStyle(a).outlineStyle !== 'none' || a.matches('main');
		return (seen ? '' : 'unseen ') + a.tagName.toLowerCase() + ' ' + name;
	})()`)
}

// keyboard goes from the list to a pod and back without a pointer.
func keyboard(t *testing.T, b *browser) {
	var walk []string
	for range 10 {
		b.run(chromedp.KeyEvent(kb.Tab))
		walk = append(walk, focused(b))
	}
	want := []string{
		"a Skip to content", "a Workloads", "a Plan", "a Budgets", "a Pulls", "a Probes", "input Find",
		"input In progress only", "a db", "a web",
	}
	if !slices.Equal(walk, want) {
		t.Fatalf("Tab reaches %q, want %q", walk, want)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(fmt.Sprintf(`document.querySelectorAll('.pod').length === %d && document.querySelector('.head button')`, pods))
	first := eval[string](b, `document.querySelector('.pod').getAttribute('aria-label')`)
	for range 20 {
		if b.run(chromedp.KeyEvent(kb.Tab)); focused(b) == "button "+first {
			break
		}
	}
	if at := focused(b); at != "button "+first {
		t.Fatalf("Tab reaches %q, want the first pod %q", at, first)
	}
	place := func() int {
		return eval[int](b, `[...document.querySelectorAll('.pod')].indexOf(document.activeElement)`)
	}
	for _, step := range []struct {
		key string
		to  func(at int) bool
	}{
		{kb.ArrowRight, func(at int) bool { return at == 1 }},
		{kb.ArrowDown, func(at int) bool { return at > 10 }},
		{kb.ArrowUp, func(at int) bool { return at == 1 }},
		{kb.End, func(at int) bool { return at == pods-1 }},
		{kb.Home, func(at int) bool { return at == 0 }},
	} {
		if b.run(chromedp.KeyEvent(step.key)); !step.to(place()) {
			t.Errorf("key %q moves to pod %d", step.key, place())
		}
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('.detail').textContent.includes('CloneSet web owns it')`)
	b.audit("the explanation of a pod")
	b.run(chromedp.KeyEvent(kb.Escape))
	if place() != 0 || !eval[bool](b, `document.querySelector('.detail').hidden`) {
		t.Errorf("Escape leaves the focus at %q", focused(b))
	}
	b.until(`document.querySelector('.side').textContent.includes('<img src=x onerror=')`)
	if title := eval[string](b, "document.title"); strings.Contains(title, "owned") {
		t.Errorf("the text of an event is markup: title %q", title)
	}
}

// writes pauses and resumes by the page.
func writes(b *browser) {
	press := func(name string) {
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.head button')].some((x) => x.textContent === %q)`, name))
		b.run(chromedp.Evaluate(fmt.Sprintf(
			`[...document.querySelectorAll('.head button')].find((x) => x.textContent === %q).click()`, name), nil))
		b.until(`document.querySelector('dialog[open]')`)
		b.audit("the dialog of " + name)
		b.run(chromedp.Click(`dialog button.main`, chromedp.ByQuery))
		b.until(`!document.querySelector('dialog')`)
	}
	press("Pause")
	press("Resume")
	press("Protect")
	press("Unprotect")
	b.until(`[...document.querySelectorAll('.head button')].some((x) => x.textContent === 'Protect')`)
}

// rollout follows the rollout of all pods.
func rollout(t *testing.T, g *ground, b *browser) {
	b.mu.Lock()
	b.messages, b.bytes, b.most = 0, 0, 0
	b.mu.Unlock()
	g.kubectl("", "patch", "cloneset", "web", "-n", "shop", "--type=merge", "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.example.com/shop/web:1.9.0"}]}}}}`)
	began := time.Now()
	updated := `document.querySelectorAll('.pod[data-shade="0"][data-state="ready"]').length`
	b.until(updated + ` < 100 && document.querySelector('.pod[data-shade="1"]')`)
	b.until(updated + ` > 130`)
	b.picture(*images, "dashboard-rollout.png")
	b.audit("a rollout, light")
	b.scheme("dark")
	b.picture(*images, "dashboard-rollout-dark.png")
	b.audit("a rollout, dark")
	b.scheme("light")
	b.until(fmt.Sprintf(`%s === %d && document.querySelector('.head .pill').textContent === 'Complete'`, updated, pods))
	took := time.Since(began)
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("followed the rollout of %d pods in %s: %d messages with %d bytes, at most %d in a second", pods,
		took.Round(time.Second), b.messages, b.bytes, b.most)
	if most := 5*took.Seconds() + 5; float64(b.messages) > most { // five a second, and those of the begin
		t.Errorf("%d messages, want %.0f at most", b.messages, most)
	}
}

func view(b *browser, name string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(`location.hash = '#/`+name+`'`, nil))
	b.until(`document.querySelector('h1') && !document.querySelector('main').textContent.includes('Loading')`)
}

func plan(b *browser) {
	view(b, "plan")
	changes := strings.NewReplacer("1.8.0", "2.0.0", "maxUnavailable: 12", "maxUnavailable: 12, partition: 60%")
	manifest := changes.Replace(web)
	text, err := json.Marshal(strings.TrimSpace(manifest))
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(
		chromedp.Evaluate(fmt.Sprintf(`document.getElementById('manifest').value = %s`, text), nil),
		chromedp.Focus(`#manifest`, chromedp.ByQuery), chromedp.KeyEvent("\r", chromedp.KeyModifiers(2)),
	)
	b.until(`document.querySelector('main').textContent.includes('120 in place')`)
	b.run(chromedp.Evaluate(`document.activeElement.blur()`, nil))
	b.picture(*images, "dashboard-plan.png")
}

func pulls(g *ground, b *browser) {
	view(b, "pulls")
	g.retry(pull)
	tag := func(phase string, progress int64, message string) map[string]any {
		one := map[string]any{"tag": "2.0.0", "phase": phase, "progress": progress, "message": message}
		if phase != "Pulling" {
			one["completionTime"] = time.Now().UTC().Format(time.RFC3339)
		}
		return one
	}
	done := 0
	g.until("38 nodes have finished", func(context.Context) error {
		g.eachNew("NodeImage", []string{"spec", "images"}, []string{"status", "imageStatuses"},
			func(o *unstructured.Unstructured) {
				outcome := tag("Succeeded", 100, "")
				if done++; done == 17 || done == 30 {
					outcome = tag("Failed", 0, "pull registry.example.com/shop/web:2.0.0: unexpected status 503 Service Unavailable")
				}
				if done > 38 {
					outcome = tag("Pulling", int64(done-38)*4, "")
				}
				g.set(o, map[string]any{
					"desired": int64(1), "succeeded": int64(0), "failed": int64(0), "pulling": int64(0),
					"imageStatuses": map[string]any{"registry.example.com/shop/web": map[string]any{"tags": []any{outcome}}},
				})
			})
		if done < 38 {
			return fmt.Errorf("%d nodes have finished", done)
		}
		return nil
	})
	g.until("the next nodes pull", func(context.Context) error {
		if n := eval[int](b, `document.querySelectorAll('.node').length`); n < 54 {
			return fmt.Errorf("%d nodes pull", n)
		}
		return nil
	})
	g.eachNew("NodeImage", []string{"spec", "images"}, []string{"status", "imageStatuses"},
		func(o *unstructured.Unstructured) {
			done++
			outcome := tag("Pulling", int64(95-5*(done%20)), "")
			g.set(o, map[string]any{
				"desired": int64(1), "succeeded": int64(0), "failed": int64(0), "pulling": int64(1),
				"imageStatuses": map[string]any{"registry.example.com/shop/web": map[string]any{"tags": []any{outcome}}},
			})
		})
	b.until(`document.querySelectorAll('.node[data-phase=Pulling]').length > 10 && ` +
		`document.querySelectorAll('.node[data-phase=Failed]').length === 2`)
	b.picture(*images, "dashboard-pulls.png")
}

func probes(g *ground, b *browser) {
	view(b, "probes")
	failed := 0
	g.eachNew("NodePodProbe", []string{"spec", "podProbes"}, []string{"status", "podProbeStatuses"},
		func(o *unstructured.Unstructured) {
			list, _, err := unstructured.NestedSlice(o.Object, "spec", "podProbes")
			if err != nil {
				g.t.Fatal(err)
			}
			var found []any
			for _, one := range list {
				pod, is := one.(map[string]any)
				if !is {
					continue
				}
				state := map[string]any{"name": "warm#cache", "state": "Succeeded"}
				if failed < 3 {
					failed++
					state = map[string]any{"name": "warm#cache", "state": "Failed", "message": "exit code 1"}
				}
				found = append(found, map[string]any{
					"name": pod["name"], "namespace": pod["namespace"], "uid": pod["uid"], "probeStates": []any{state},
				})
			}
			g.set(o, map[string]any{"podProbeStatuses": found})
		})
	b.until(`document.querySelector('main').textContent.includes('297 succeeded, 3 failed, 0 unknown')`)
}

// eachNew calls a function with the objects of a kind that have one field, and not the other.
func (g *ground) eachNew(kind string, with, without []string, do func(o *unstructured.Unstructured)) {
	g.t.Helper()
	version := map[string]string{"NodeImage": "v1beta1", "NodePodProbe": "v1alpha1"}[kind]
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: kind + "List"})
	if err := g.Client.List(g.t.Context(), &list); err != nil {
		g.t.Fatal(err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		_, wanted, _ := unstructured.NestedFieldNoCopy(o.Object, with...)
		_, has, _ := unstructured.NestedFieldNoCopy(o.Object, without...)
		if wanted && !has {
			do(o)
		}
	}
}

// set writes the status of an object.
func (g *ground) set(o *unstructured.Unstructured, status map[string]any) {
	g.t.Helper()
	before := o.DeepCopy()
	o.Object["status"] = status
	if err := g.Client.Status().Patch(g.t.Context(), o, client.MergeFrom(before)); err != nil {
		g.t.Fatal(err)
	}
}

// everyView audits the views in both colour schemes, and in a narrow window.
func everyView(b *browser) {
	rolled := "rollout/CloneSet/shop/" + url.PathEscape("web")
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, name := range []string{"workloads", "budgets", "pulls", "probes", "plan", rolled} {
			view(b, name)
			if name == rolled {
				b.until(`document.querySelectorAll('.pod').length > 0`)
			}
			b.audit(name + ", " + scheme)
		}
	}
	b.scheme("light")
	view(b, "workloads")
	b.run(chromedp.EmulateViewport(700, 900))
	view(b, rolled)
	b.until(`document.querySelectorAll('.pod').length > 0`)
	b.audit("a narrow window")
}

package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

const ofWeb = "view=rollout&kind=CloneSet&namespace=default&name=web"

// A page gets all rows once, and then those that change.
func TestStream(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			stranger := strings.Replace(podText("stranger", "web-1"), "uid: web,", "uid: other,", 1)
			g := open(t, version, flags{}, cloneSet, podText("web-a", "web-1"), podText("web-b", "web-1"), stranger, budget)
			e := g.follow(t, ofWeb)
			e.until(func(tables map[string]Change) bool {
				return tables["Pod"].Loaded && tables["Workload"].Loaded && tables["PodUnavailableBudget"].Loaded &&
					tables["Event"].Loaded
			})
			if got := len(e.tables["Pod"].Set); got != 2 {
				t.Errorf("%d pods, want the 2 that the workload controls", got)
			}
			row := string(e.tables["Pod"].Set["default/web-a"])
			if want := `{"n":"web-a","r":"1","s":"ready","o":"node-1","c":`; !strings.HasPrefix(row, want) {
				t.Errorf("pod %s, want %s", row, want)
			}
			row = string(e.tables["Workload"].Set["default/web"])
			for _, want := range []string{`"updated":1`, `"replicas":3`, `"minAvailable":2`, `"update":"web-2"`} {
				if !strings.Contains(row, want) {
					t.Errorf("workload %s, want %s", row, want)
				}
			}
			if row := string(e.tables["PodUnavailableBudget"].Set["default/guard"]); !strings.Contains(row, `"allowed":1`) {
				t.Errorf("budget %s", row)
			}

			g.Change("pods/web-b", func(o *unstructured.Unstructured) {
				o.SetLabels(map[string]string{"app": "web", "controller-revision-hash": "web-2"})
			})
			changes := e.until(has("Pod", "default/web-b", `"r":"2"`))
			if len(changes) != 1 || len(changes["Pod"].Set) != 1 {
				t.Errorf("changes %v, want web-b alone", changes)
			}
			g.Delete("pods/web-b")
			e.until(func(tables map[string]Change) bool { return len(tables["Pod"].Set) == 1 })
			g.Put(t, object(t, version, podText("web-c", "web-2")))
			e.until(has("Pod", "default/web-c", "web-c"))
		})
	}
}

// A change that shows in no row sends nothing.
func TestStreamWithoutChange(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet, podText("web-a", "web-1"))
	e := g.follow(t, ofWeb)
	e.until(has("Pod", "default/web-a", "web-a"))
	g.Change("pods/web-a", func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) })
	g.Put(t, object(t, "v1beta1", podText("web-b", "web-1")))
	for {
		changes := e.next()["Pod"]
		if _, has := changes.Set["default/web-a"]; has {
			t.Error("web-a is sent again")
		}
		if _, has := changes.Set["default/web-b"]; has {
			return
		}
	}
}

// What the user may not read is left out with a note, and what the cluster lacks too.
func TestRights(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet, podText("web-a", "web-1"))
	g.Deny(func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/pods") || strings.HasSuffix(r.URL.Path, "/daemonsets")
	})
	e := g.follow(t, ofWeb)
	e.until(func(tables map[string]Change) bool {
		return tables["Pod"].Note == "You may not list and watch Pod in namespace default." && tables["Workload"].Loaded
	})
	e = g.follow(t, "view=workloads")
	e.until(func(tables map[string]Change) bool {
		return tables["DaemonSet"].Note == "You may not list and watch DaemonSet in namespace default." &&
			tables["CloneSet"].Loaded && len(tables["CloneSet"].Set) == 1
	})
	absent, _ := explainFailure(list{kind: kindNamed("Thing")}, fmt.Errorf("no: %w", noMatch()))
	if absent != "The cluster does not serve Thing." {
		t.Error(absent)
	}
}

// A reader that does not read delays no other, and costs no more than the keys of the rows.
func TestSlowReader(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet, podText("web-a", "web-1"))
	slow := g.follow(t, ofWeb) // which reads nothing any more
	quick := g.follow(t, ofWeb)
	quick.until(has("Pod", "default/web-a", "web-a"))
	large := strings.Repeat("x", 300)
	for i := range 3000 {
		g.Change("pods/web-a", func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"app": "web", "controller-revision-hash": fmt.Sprint(large, i)})
		})
	}
	began := time.Now()
	quick.until(has("Pod", "default/web-a", `x2999"`))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the quick reader waited %s", took)
	}
	slow.until(has("Pod", "default/web-a", `x2999"`)) // which skips most of what is between
}

// Changes between two messages become one.
func TestCoalescing(t *testing.T) {
	table, r := newTable("Pod"), newReader()
	table.attach(r)
	for i := range 1000 {
		table.set("a", json.RawMessage(fmt.Sprint(i)))
		table.set("b", json.RawMessage(`"same"`))
	}
	changes, more := r.take(10)
	if more || string(changes["Pod"].Set["a"]) != "999" || len(changes["Pod"].Set) != 2 {
		t.Errorf("changes %v, more %v", changes, more)
	}
	table.set("b", json.RawMessage(`"same"`))
	if changes, _ := r.take(10); len(changes) != 0 {
		t.Errorf("changes %v of equal rows", changes)
	}
	for i := range 25 {
		table.set(fmt.Sprint(i), json.RawMessage("1"))
	}
	sum := 0
	for more = true; more; {
		changes, more = r.take(10)
		if n := len(changes["Pod"].Set); n > 10 {
			t.Errorf("a message of %d rows", n)
		}
		sum += len(changes["Pod"].Set)
	}
	if sum != 25 {
		t.Errorf("%d rows, want 25", sum)
	}
}

// A table is bounded, and says what it leaves out.
func TestBound(t *testing.T) {
	table, r := newTable("Pod"), newReader()
	table.limit = 2
	table.attach(r)
	for i := range 5 {
		table.set(fmt.Sprint(i), json.RawMessage("1"))
	}
	changes, _ := r.take(100)
	if c := changes["Pod"]; len(c.Set) != 2 || !strings.HasPrefix(c.Note, "Pod has 3 objects more than the 2") {
		t.Errorf("%v", c)
	}
	for _, key := range []string{"2", "3", "4"} {
		table.remove(key)
	}
	changes, _ = r.take(100)
	if c := changes["Pod"]; c.Note != "" {
		t.Errorf("note %q", c.Note)
	}
}

// A feed runs once for all readers, and ends some time after the last.
func TestFeedsEnd(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet)
	first := g.follow(t, "view=budgets")
	first.next()
	g.dashboard.sources.linger = time.Millisecond
	second := g.follow(t, "view=budgets")
	second.next()
	if n := g.dashboard.sources.active(); n != 1 {
		t.Errorf("%d feeds for two readers of one view", n)
	}
	first.close()
	second.close()
	none := func(context.Context) (bool, error) { return g.dashboard.sources.active() == 0, nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, none); err != nil {
		t.Fatal("the feed runs without readers")
	}
}

func TestLimitOfStreams(t *testing.T) {
	g := open(t, "v1beta1", flags{})
	for range maxStreams {
		g.follow(t, "view=budgets").next()
	}
	if code, _ := g.get(t, "api/events?view=budgets"); code != http.StatusServiceUnavailable {
		t.Errorf("status %d", code)
	}
}

// A workload of the same name that is created again has its own pods.
func TestRecreatedWorkload(t *testing.T) {
	g := open(t, "v1beta1", flags{}, cloneSet, podText("web-a", "web-1"))
	e := g.follow(t, ofWeb)
	e.until(has("Pod", "default/web-a", "web-a"))
	g.Delete("clonesets/web")
	e.until(func(tables map[string]Change) bool { return len(tables["Workload"].Set) == 0 })
	g.Put(t, object(t, "v1beta1", strings.Replace(cloneSet, "uid: web,", "uid: again,", 1)))
	g.Put(t, object(t, "v1beta1", strings.Replace(podText("web-b", "web-1"), "uid: web,", "uid: again,", 1)))
	e.until(func(tables map[string]Change) bool {
		return len(tables["Pod"].Set) == 1 && tables["Pod"].Set["default/web-b"] != nil
	})
}

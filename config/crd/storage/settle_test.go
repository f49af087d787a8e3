package storage

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// noon is the time at the API server.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// managed is an entry of a manager that has written fields some time before noon.
func managed(ago time.Duration, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Time: &metav1.Time{Time: noon.Add(-ago)}, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

const (
	ofVersions = `{"f:spec":{"f:group":{},"f:versions":{}}}`
	ofStatus   = `{"f:status":{"f:storedVersions":{}}}`
)

func TestUnsettled(t *testing.T) {
	type entries = []metav1.ManagedFieldsEntry
	timeless := managed(0, ofVersions)
	timeless.Time = nil
	for name, row := range map[string]struct {
		managers entries
		at       time.Time
		want     time.Duration
	}{
		"the rest after the last change of the versions": {
			entries{managed(time.Hour, ofVersions), managed(20*time.Second, ofVersions)},
			noon,
			70 * time.Second,
		},
		"nothing after a longer time":            {entries{managed(90*time.Second, ofVersions)}, noon, 0},
		"all where no manager has the versions":  {entries{managed(time.Hour, ofStatus)}, noon, settle},
		"all where an entry has no time":         {entries{managed(time.Hour, ofVersions), timeless}, noon, settle},
		"all where the API server has no time":   {entries{managed(time.Hour, ofVersions)}, time.Time{}, settle},
		"all where the change is in the future":  {entries{managed(-time.Second, ofVersions)}, noon, settle},
		"all without managed fields":             {nil, noon, settle},
		"an entry without fields is not counted": {entries{{}, managed(time.Hour, ofVersions)}, noon, 0},
		"a later write of other fields is no change": {
			entries{managed(time.Hour, ofVersions), managed(0, ofStatus)}, noon, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &definition{}
			crd.ManagedFields = row.managers
			if got := unsettled(crd, row.at, settle); got != row.want {
				t.Errorf("waits %s, want %s", got, row.want)
			}
		})
	}
}

// A migration reports each step of its wait, its way through many objects, and its end.
func TestMigrateReports(t *testing.T) {
	s := newShop("a", "b", "c", "d")
	s.clock.now = noon
	s.crd.ManagedFields = []metav1.ManagedFieldsEntry{managed(55*time.Second, ofVersions)}
	s.before = func(request string) error {
		if strings.HasPrefix(request, "rewrite") {
			s.clock.now = s.clock.now.Add(8 * time.Second)
		}
		return nil
	}
	var got []string
	r, _ := s.migrateShop(t.Context(), Options{Report: func(p Progress) {
		got = append(got, fmt.Sprintf("%s: wait %s, %d of %d, %t", p.CRD, p.Wait, p.Objects, p.Total, p.Pruned))
	}})
	if !r.Done() {
		t.Errorf("the result is %+v", r)
	}
	want := []string{
		"carts.example.com: wait 35s, 0 of 0, false", "carts.example.com: wait 20s, 0 of 0, false",
		"carts.example.com: wait 5s, 0 of 0, false", "carts.example.com: wait 0s, 2 of 4, false",
		"carts.example.com: wait 0s, 4 of 4, false", "carts.example.com: wait 0s, 4 of 4, true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{step, step, 5 * time.Second}, s.clock.waited); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

// The age of a change is that at the API server, by the time of its response.
func TestDefinitionTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Date", noon.Format(http.TimeFormat))
		fmt.Fprint(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
			"metadata":{"name":"`+carts+`"}}`)
	}))
	defer server.Close()
	a, err := newAPI(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	crd, at, err := a.definition(t.Context(), carts)
	if err != nil || crd.Name != carts || !at.Equal(noon) {
		t.Errorf("%v at %s, %v; want the CRD at %s", crd, at, err, noon)
	}
}

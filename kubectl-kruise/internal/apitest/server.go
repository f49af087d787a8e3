// Package apitest is an API server for tests of commands: it has the discovery, the objects, the watches and the
// patches that commands need, serves the CRDs of this repository in the versions that a test selects, and records what
// is written.
package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/scheme"
)

// Server is an API server.
type Server struct {
	URL string

	resources []resource
	mu        sync.Mutex
	objects   map[string]*unstructured.Unstructured // by path
	writes    []string
	watchers  watchers
	denied    func(r *http.Request) bool
	// onWrite is called after each write, with the path and the object.
	onWrite func(path string, o *unstructured.Unstructured)
}

// New returns a server that serves the CRDs in one version alone, where they have it, and objects.
func New(t testing.TB, version string, objects ...runtime.Object) *Server {
	t.Helper()
	s := &Server{
		resources: resources(t, version), objects: map[string]*unstructured.Unstructured{},
		watchers: watchers{next: make(chan struct{})},
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL
	for _, o := range objects {
		s.Put(t, o)
	}
	return s
}

// OnWrite sets what is called after each write, as a controller would act.
func (s *Server) OnWrite(do func(path string, o *unstructured.Unstructured)) { s.onWrite = do }

// Deny sets which requests are forbidden.
func (s *Server) Deny(denied func(r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = denied
}

// Put stores an object.
func (s *Server) Put(t testing.TB, o runtime.Object) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: fields}
	kind := object.GroupVersionKind()
	for _, r := range s.resources {
		if r.kind == kind {
			s.keep(r.path(object.GetNamespace())+"/"+object.GetName(), object)
			return
		}
	}
	t.Fatalf("the server has no %v", kind)
}

// Object returns a stored object by the end of its path, such as clonesets/web: nil for none.
func (s *Server) Object(suffix string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if strings.HasSuffix(path, "/"+suffix) {
			return o.DeepCopy()
		}
	}
	return nil
}

// Writes returns the writes since it was last called: method, resource and name, and body.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if answer := s.discover(r.URL.Path); answer != nil {
		send(w, http.StatusOK, answer)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if body, err = plain(body); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	object, subresource := path, ""
	for _, sub := range []string{"status", "scale", "eviction", "exec", "log"} {
		if trimmed, has := strings.CutSuffix(path, "/"+sub); has {
			object, subresource = trimmed, sub
		}
	}
	s.mu.Lock()
	denied := s.denied
	s.mu.Unlock()
	if denied != nil && denied(r) {
		fail(w, http.StatusForbidden, path)
		return
	}
	if r.Method != http.MethodGet {
		s.record(r, path, body)
	}
	switch r.Method {
	case http.MethodGet:
		s.get(w, r, object, subresource)
	case http.MethodPatch:
		s.patch(w, r, target{object, subresource}, body)
	case http.MethodPost:
		s.create(w, target{path, subresource}, body, isDryRun(r, body))
	case http.MethodDelete:
		s.delete(w, object, isDryRun(r, body))
	case http.MethodPut:
		s.put(w, object, subresource, body)
	default:
		fail(w, http.StatusMethodNotAllowed, r.Method)
	}
}

// plain returns an object as JSON that typed clients send as protobuf.
func plain(body []byte) ([]byte, error) {
	if !bytes.HasPrefix(body, []byte("k8s\x00")) {
		return body, nil
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(scheme.DefaultJSONEncoder(), o)
}

// isDryRun reports whether a write is not to be stored. The options of a deletion are its body.
func isDryRun(r *http.Request, body []byte) bool {
	return r.URL.Query().Get("dryRun") != "" ||
		r.Method == http.MethodDelete && bytes.Contains(body, []byte(`"dryRun":["All"]`))
}

// record records a write.
func (s *Server) record(r *http.Request, path string, body []byte) {
	short, longest := path, -1
	for _, res := range s.resources {
		if at := strings.LastIndex(path, "/"+res.Name); at > longest && strings.HasPrefix(path, res.root()) {
			short, longest = path[at+1:], at
		}
	}
	dryRun := ""
	if isDryRun(r, body) {
		dryRun = " (dry run)"
	}
	s.mu.Lock()
	s.writes = append(s.writes, fmt.Sprintf("%s %s%s %s", r.Method, short, dryRun, strings.TrimSpace(string(body))))
	s.mu.Unlock()
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, path, subresource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[path]; o != nil {
		if subresource == "scale" {
			send(w, http.StatusOK, scaleOf(o))
			return
		}
		send(w, http.StatusOK, o.Object)
		return
	}
	kind, known := s.kindAt(path)
	if !known {
		fail(w, http.StatusNotFound, path)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.mu.Unlock()
		s.watch(w, r, path)
		s.mu.Lock()
		return
	}
	items := s.list(r, path)
	send(w, http.StatusOK, map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List",
		"metadata": map[string]any{"resourceVersion": s.watchers.version()}, "items": items,
	})
}

// list returns the objects of a collection that a request selects.
func (s *Server) list(r *http.Request, path string) []any {
	items := []any{}
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[at]; selects(r, path, at, o) {
			items = append(items, o.Object)
		}
	}
	return items
}

// selects reports whether a request for a collection selects an object.
func selects(r *http.Request, path, at string, o *unstructured.Unstructured) bool {
	if collection(at) != path && !collects(path, at, o) {
		return false
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	name, byName := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	return err == nil && selector.Matches(labels.Set(o.GetLabels())) && (!byName || name == o.GetName())
}

func scaleOf(o *unstructured.Unstructured) any {
	replicas, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
	return map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace(), "resourceVersion": "1"},
		"spec":     map[string]any{"replicas": replicas}, "status": map[string]any{"replicas": replicas},
	}
}

func send(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, code int, message string) {
	reason := map[int]string{
		http.StatusNotFound: "NotFound", http.StatusUnprocessableEntity: "Invalid", http.StatusForbidden: "Forbidden",
		http.StatusConflict: "AlreadyExists",
	}[code]
	send(w, code, map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
		"message": message + " " + reason,
	})
}

func collection(path string) string { return path[:strings.LastIndex(path, "/")] }

package apitest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change is one that watches report.
type change struct {
	kind, path string
	object     *unstructured.Unstructured
}

// watchers has all changes since the start, so that a watch misses none. The lock of the server guards it.
type watchers struct {
	changes []change
	next    chan struct{} // closed by the next change
}

// version is the one of a list that has all changes.
func (w *watchers) version() string { return strconv.Itoa(len(w.changes) + 1) }

func (w *watchers) add(kind, path string, o *unstructured.Unstructured) {
	o = o.DeepCopy()
	w.changes = append(w.changes, change{kind: kind, path: path, object: o})
	o.SetResourceVersion(w.version())
	close(w.next)
	w.next = make(chan struct{})
}

// watch reports the changes of a collection since the version of a request, until the client leaves.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, path string) {
	seen, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil || seen < 1 {
		seen = 1
	}
	seen--
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	to, out := http.NewResponseController(w), json.NewEncoder(w)
	for {
		s.mu.Lock()
		changes, next := s.watchers.changes, s.watchers.next
		s.mu.Unlock()
		for ; seen < len(changes); seen++ {
			if c := changes[seen]; selects(r, path, c.path, c.object) {
				_ = out.Encode(map[string]any{"type": c.kind, "object": c.object.Object})
			}
		}
		if err := to.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		}
	}
}

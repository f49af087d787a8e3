package apitest

import (
	"encoding/json"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// target is what a request is about.
type target struct{ path, subresource string }

func (s *Server) patch(w http.ResponseWriter, r *http.Request, to target, body []byte) {
	s.mu.Lock()
	o := s.objects[to.path]
	s.mu.Unlock()
	if o == nil {
		fail(w, http.StatusNotFound, to.path)
		return
	}
	before, err := o.MarshalJSON()
	after := before
	if err == nil && r.Header.Get("Content-Type") == "application/json-patch+json" {
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = patch.Apply(before)
		}
	} else if err == nil {
		after, err = jsonpatch.MergePatch(before, body)
	}
	patched := &unstructured.Unstructured{}
	if err == nil {
		err = patched.UnmarshalJSON(after)
	}
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	s.store(to.path, patched, r.URL.Query().Get("dryRun") != "")
	if to.subresource == "scale" {
		send(w, http.StatusOK, scaleOf(patched))
		return
	}
	send(w, http.StatusOK, patched.Object)
}

func (s *Server) create(w http.ResponseWriter, to target, body []byte, dryRun bool) {
	if to.subresource == "exec" {
		fail(w, http.StatusMethodNotAllowed, "exec is not served")
		return
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &o.Object); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if to.subresource == "" {
		if o.GetName() == "" {
			o.SetName(o.GetGenerateName() + "x")
		}
		at := to.path + "/" + o.GetName()
		s.mu.Lock()
		exists := s.objects[at] != nil
		s.mu.Unlock()
		if exists {
			fail(w, http.StatusConflict, o.GetName())
			return
		}
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		s.store(at, o, dryRun)
	}
	send(w, http.StatusCreated, o.Object)
}

// delete deletes an object, and frees what it controls.
func (s *Server) delete(w http.ResponseWriter, path string, dryRun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.objects[path]
	switch {
	case gone == nil:
		fail(w, http.StatusNotFound, path)
		return
	case dryRun:
		send(w, http.StatusOK, gone.Object)
		return
	}
	delete(s.objects, path)
	s.watchers.add("DELETED", path, gone)
	for _, o := range s.objects {
		if metav1.IsControlledBy(o, gone) {
			o.SetOwnerReferences(nil)
		}
	}
	send(w, http.StatusOK, gone.Object)
}

// Change changes a stored object, by the end of its path.
func (s *Server) Change(suffix string, change func(o *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if strings.HasSuffix(path, "/"+suffix) {
			change(o)
			s.watchers.add("MODIFIED", path, o)
		}
	}
}

// Delete deletes a stored object, by the end of its path.
func (s *Server) Delete(suffix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if strings.HasSuffix(path, "/"+suffix) {
			delete(s.objects, path)
			s.watchers.add("DELETED", path, o)
		}
	}
}

func (s *Server) put(w http.ResponseWriter, path, subresource string, body []byte) {
	sent := map[string]any{}
	if err := json.Unmarshal(body, &sent); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	o := s.objects[path]
	if o != nil && subresource == "scale" {
		replicas, _, _ := unstructured.NestedFieldNoCopy(sent, "spec", "replicas")
		_ = unstructured.SetNestedField(o.Object, replicas, "spec", "replicas")
	}
	s.mu.Unlock()
	send(w, http.StatusOK, sent)
}

func (s *Server) store(path string, o *unstructured.Unstructured, dryRun bool) {
	if dryRun {
		return
	}
	s.keep(path, o)
	if s.onWrite != nil {
		s.onWrite(path, o)
	}
}

// keep stores an object at a path.
func (s *Server) keep(path string, o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "ADDED"
	if s.objects[path] != nil {
		kind = "MODIFIED"
	}
	s.objects[path] = o
	s.watchers.add(kind, path, o)
}

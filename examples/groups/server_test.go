package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// server is what the operator needs of an API server, behind the transport of a client.
type server struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	pods    map[string]*corev1.Pod    // those of the objects, not to be changed
	version int
	// writes of the current process; it dies at one of them, before or after the server has it.
	writes, diesAt int
	diesAfter      bool
	die            func()
	// late is a creation of a dead process that is still under way. It arrives before a write of the next process.
	late func()
	// changed is called after each change.
	changed func()
}

var errDead = errors.New("the process is dead")

func (s *server) client() *kubernetes.Clientset {
	return kubernetes.NewForConfigOrDie(&rest.Config{
		Host: "http://server", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
}

// RoundTrip answers a request, unless the process dies of it.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.diesAt > 0 && s.writes >= s.diesAt {
		return nil, errDead
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if r.Method != http.MethodGet {
		if s.late != nil {
			s.late()
			s.late = nil
		}
		if s.writes++; s.writes == s.diesAt {
			s.die()
			if !s.diesAfter {
				if r.Method == http.MethodPost {
					s.late = func() { s.serve(r, body) }
				}
				return nil, errDead
			}
		}
	}
	code, answer := s.serve(r, body)
	if s.diesAt > 0 && s.writes == s.diesAt && r.Method != http.MethodGet {
		return nil, errDead
	}
	raw, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: code, Body: io.NopCloser(bytes.NewReader(raw)), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

func (s *server) serve(r *http.Request, body []byte) (int, any) {
	path := r.URL.Path
	base, subresource := path, ""
	for _, sub := range []string{"/status", "/resize"} {
		if trimmed, ok := strings.CutSuffix(path, sub); ok {
			base, subresource = trimmed, sub
		}
	}
	have := s.objects[base]
	switch {
	case r.Method == http.MethodGet && have != nil:
		return http.StatusOK, have
	case r.Method == http.MethodGet:
		return http.StatusOK, s.list(path, r.URL.Query().Get("labelSelector"))
	case r.Method == http.MethodPost:
		return s.create(path, body)
	case have == nil:
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, path)
	case r.Method == http.MethodPatch:
		return s.patch(base, subresource, types.PatchType(r.Header.Get("Content-Type")), body)
	}
	return s.delete(base, body)
}

func failure(code int32, reason metav1.StatusReason, message string) (int, any) {
	return int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

// list returns the objects of a collection; that of the teams is the same in all namespaces.
func (s *server) list(path, selector string) any {
	selected, items := labels.Everything(), []any{}
	if selector != "" {
		selected, _ = labels.Parse(selector)
	}
	for _, at := range slices.Sorted(maps.Keys(s.objects)) {
		collection := at[strings.LastIndex(at[:strings.LastIndex(at, "/")], "/"):strings.LastIndex(at, "/")]
		if strings.HasSuffix(path, collection) &&
			selected.Matches(labels.Set(decode[metav1.PartialObjectMetadata](s.objects[at]).Labels)) {
			items = append(items, s.objects[at])
		}
	}
	return map[string]any{"items": items}
}

func (s *server) create(path string, body []byte) (int, any) {
	object := map[string]any{}
	if err := json.Unmarshal(body, &object); err != nil {
		return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	meta := object["metadata"].(map[string]any)
	if meta["name"] == nil {
		meta["name"] = fmt.Sprintf("%s%d", meta["generateName"], s.version)
	}
	path += "/" + meta["name"].(string)
	if s.objects[path] != nil {
		return failure(http.StatusConflict, metav1.StatusReasonAlreadyExists, path)
	}
	meta["uid"], meta["creationTimestamp"] = fmt.Sprintf("uid-%d", s.version), metav1.Now()
	return http.StatusCreated, s.put(path, object)
}

// put stores an object.
func (s *server) put(path string, object map[string]any) map[string]any {
	s.version++
	object = decode[map[string]any](object)
	object["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.version)
	s.objects[path] = object
	if strings.Contains(path, "/pods/") {
		s.pods[path] = decode[*corev1.Pod](object)
	}
	s.changed()
	return s.objects[path]
}

// patch changes the part of an object that belongs to the subresource. A JSON patch whose test fails is invalid.
func (s *server) patch(path, subresource string, kind types.PatchType, body []byte) (int, any) {
	raw, err := json.Marshal(s.objects[path])
	if err == nil && kind == types.MergePatchType {
		raw, err = jsonpatch.MergePatch(raw, body)
	} else if err == nil {
		var ops jsonpatch.Patch
		if ops, err = jsonpatch.DecodePatch(body); err == nil {
			raw, err = ops.Apply(raw)
		}
	}
	after := map[string]any{}
	if err = errors.Join(err, json.Unmarshal(raw, &after)); err != nil {
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	}
	before := decode[map[string]any](s.objects[path])
	if subresource == "/status" {
		before["status"] = after["status"]
		return http.StatusOK, s.put(path, before)
	}
	after["status"] = before["status"]
	return http.StatusOK, s.put(path, after)
}

// delete marks a pod, which its kubelet removes, and removes any other object.
func (s *server) delete(path string, body []byte) (int, any) {
	object := decode[map[string]any](s.objects[path])
	var options metav1.DeleteOptions
	_ = json.Unmarshal(body, &options)
	if meta := decode[metav1.PartialObjectMetadata](object); options.Preconditions != nil &&
		*options.Preconditions.UID != meta.UID {
		return failure(http.StatusConflict, metav1.StatusReasonConflict, path)
	}
	if !strings.Contains(path, "/pods/") {
		delete(s.objects, path)
		return http.StatusOK, metav1.Status{Status: metav1.StatusSuccess}
	}
	object["metadata"].(map[string]any)["deletionTimestamp"] = metav1.Now()
	return http.StatusOK, s.put(path, object)
}

// runPods is what nodes do with some of the pods: they run what a pod asks for, and report whether the pod is ready.
func (s *server) runPods(random *rand.Rand) {
	for _, path := range slices.Sorted(maps.Keys(s.pods)) {
		switch pod := s.pods[path].DeepCopy(); {
		case random.IntN(3) == 0:
		case pod.DeletionTimestamp != nil:
			delete(s.objects, path)
			delete(s.pods, path)
			s.changed()
		default:
			run(pod)
			if !apiequality.Semantic.DeepEqual(pod, s.pods[path]) {
				s.put(path, decode[map[string]any](pod))
			}
		}
	}
}

// run is one step of a pod on its node: a container whose image changed stops, and starts in the next step.
func run(pod *corev1.Pod) {
	pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "node"
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name}}
	}
	s, image := &pod.Status.ContainerStatuses[0], pod.Spec.Containers[0].Image
	switch {
	case s.Image == image:
		s.Ready = true
	case s.Ready:
		s.Ready = false
	default:
		if s.Image != "" {
			s.RestartCount++
		}
		s.Image, s.ImageID = image, "id-of-"+image
		s.ContainerID = fmt.Sprintf("run://%s/%d", pod.UID, s.RestartCount)
		s.State.Running, s.Ready = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}, true
	}
	ready := s.Ready
	setCondition(pod, corev1.ContainersReady, ready)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && isTrue(pod, gate.ConditionType)
	}
	setCondition(pod, corev1.PodReady, ready)
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool) {
	if isTrue(pod, kind) == is {
		return
	}
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if is {
		c.Status = corev1.ConditionTrue
	}
	others := slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	pod.Status.Conditions = append(others, c)
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func decode[T any](from any) (to T) {
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, &to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

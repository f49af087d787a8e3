// Package scopetest is a webhook for tests that ask what API servers send to one.
package scopetest

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// Webhook lets everything through, and counts it.
type Webhook struct {
	*httptest.Server

	mu   sync.Mutex
	sent map[Call]int
}

// Call is what a webhook was sent: an object, and the path that it came to.
type Call struct{ Path, Namespace, Name string }

// New is a webhook that ends with the test.
func New(t *testing.T) *Webhook {
	t.Helper()
	w := &Webhook{sent: map[Call]int{}}
	w.Server = httptest.NewUnstartedServer(w)
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

// ServeHTTP answers an API server.
func (w *Webhook) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(to, "this is no review", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.sent[Call{r.URL.Path, review.Request.Namespace, review.Request.Name}]++
	w.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(to).Encode(review) // a client that has gone needs no answer
}

// Sent is how often something like a call came. What is empty in it may be anything.
func (w *Webhook) Sent(like Call) int {
	matches := func(want, is string) bool { return want == "" || want == is }
	w.mu.Lock()
	defer w.mu.Unlock()
	times := 0
	for is, n := range w.sent {
		if matches(like.Path, is.Path) && matches(like.Namespace, is.Namespace) && matches(like.Name, is.Name) {
			times += n
		}
	}
	return times
}

// Authority is whom API servers are to trust, as PEM.
func (w *Webhook) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.Certificate().Raw})
}

package pod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/revision"
)

// mostBytes of a request. API servers send two objects of 3 MiB at most, and little else.
const mostBytes = 7 << 20

// handler answers over HTTP. Every creation of a pod waits for it, so it decodes the pod together with its request, and
// no field that no step reads.
type handler struct {
	*Webhook
	open bool
}

// envelope is an AdmissionReview. v1 and v1beta1 have the same fields here.
type envelope struct {
	metav1.TypeMeta `json:",inline"`
	Request         *question                      `json:"request,omitempty"`
	Response        *admissionv1.AdmissionResponse `json:"response,omitempty"`
}

// question is an admission request, as far as the steps read it.
type question struct {
	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	DryRun      *bool                       `json:"dryRun"`
	Pod         *corev1.Pod                 `json:"object"`
}

// concerns reports whether the request creates a pod.
func (q *question) concerns() bool {
	return q.Operation == admissionv1.Create && q.Resource.Group == corev1.GroupName && q.Resource.Resource == "pods" &&
		q.SubResource == ""
}

// ServeHTTP answers a review.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, err := read(r)
	var answer admission.Response
	if err == nil {
		answer = h.answer(r.Context(), in.Request, caller{r.URL.Path, review.Within(r, h.options.Timeout), h.open})
	} else {
		answer = review.BadRequest(err)
	}
	out := envelope{TypeMeta: in.TypeMeta, Response: &answer.AdmissionResponse}
	if in.Request != nil {
		out.Response.UID = in.Request.UID
	}
	data, err := json.Marshal(out)
	if err != nil { // every field can be encoded
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // a client that has gone needs no answer
}

// read decodes a review. After an error it returns an empty one with the UID, without which the API server drops the
// message.
func read(r *http.Request) (envelope, error) {
	in := envelope{TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}}
	if is := r.Header.Get("Content-Type"); is != "application/json" {
		return in, fmt.Errorf("the request is %q rather than application/json", is)
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, mostBytes)) + bytes.MinRead)
	}
	if n, err := body.ReadFrom(io.LimitReader(r.Body, mostBytes+1)); err != nil || n > mostBytes {
		return in, errors.Join(fmt.Errorf("read the request: %d bytes of at most %d", n, mostBytes), err)
	}
	sent := envelope{}
	unknownFields, err := review.UnmarshalObject(body.Bytes(), &sent)
	if err != nil {
		var bare struct {
			Request struct {
				UID types.UID `json:"uid"`
			} `json:"request"`
		}
		if review.Unmarshal(body.Bytes(), &bare) == nil {
			in.Request = &question{UID: bare.Request.UID}
		}
		return in, err
	}
	if sent.Kind != in.Kind || sent.Request == nil {
		return in, fmt.Errorf("a review is wanted, not a %q without a request", sent.Kind)
	}
	if sent.Request.Pod != nil {
		delete(sent.Request.Pod.Annotations, revision.UnknownFieldsKey)
	}
	if unknownFields {
		err = keepUnknownFields(body.Bytes(), sent.Request.Pod)
	}
	return sent, err
}

// keepUnknownFields keeps the fields of a pod in a review that its type lacks, so that no patch of a list drops them.
func keepUnknownFields(body []byte, pod *corev1.Pod) error {
	var values struct {
		Request struct {
			Object map[string]any `json:"object"`
		} `json:"request"`
	}
	if err := review.Unmarshal(body, &values); err != nil {
		return err
	}
	return revision.KeepUnknownFields(pod, values.Request.Object)
}

// answer recovers a panic of a step, logs it, and rejects the pod with its text.
func (w *Webhook) answer(ctx context.Context, q *question, c caller) (answer admission.Response) {
	defer func() {
		if fault := recover(); fault != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", fault), "Recovered panic while reviewing a pod",
				"stack", string(debug.Stack()))
			answer = admission.Errored(http.StatusInternalServerError, fmt.Errorf("panic: %v [recovered]", fault))
		}
	}()
	return w.review(ctx, q, c)
}

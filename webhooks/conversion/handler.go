package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Path is the URL path of the handler, as in spec.conversion of the CRDs.
const Path = "/convert"

// mostBytes limits the body of a request, to 7 MiB as controller-runtime does for admission. API servers send the
// objects of a list in one review each.
const mostBytes = 7 << 20

// NewHandler returns the handler of ConversionReviews for all kinds with two versions.
func NewHandler() http.Handler {
	return handler{kinds: kinds()}
}

type handler struct {
	kinds map[schema.GroupKind]kind
}

// ServeHTTP converts the objects of one ConversionReview. It reports a conversion error in the response of the review,
// with HTTP status 200. The HTTP status is an error only if the review cannot be read or written.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		http.Error(w, "read review: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "read review: "+err.Error(), http.StatusBadRequest)
		return
	}
	review := apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, "decode review: "+err.Error(), http.StatusBadRequest)
		return
	}
	if review.Request == nil {
		http.Error(w, "the review has no request", http.StatusBadRequest)
		return
	}
	review.Response = h.answer(review.Request)
	review.Request = nil
	data, err := json.Marshal(review)
	if err != nil {
		http.Error(w, "encode review: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The client is gone if this fails; no client reads the error.
	_, _ = w.Write(data)
}

func (h handler) answer(req *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	converted := make([]runtime.RawExtension, 0, len(req.Objects))
	for i := range req.Objects {
		data, err := h.convert(req.Objects[i].Raw, req.DesiredAPIVersion)
		if err != nil {
			return refusal(req.UID, err)
		}
		converted = append(converted, runtime.RawExtension{Raw: data})
	}
	return &apiextensionsv1.ConversionResponse{
		UID:              req.UID,
		ConvertedObjects: converted,
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
}

func refusal(uid types.UID, err error) *apiextensionsv1.ConversionResponse {
	return &apiextensionsv1.ConversionResponse{
		UID:    uid,
		Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonBadRequest},
	}
}

// convert returns the object in the apiVersion wanted. It returns raw itself if the object already has this version.
// Values without a schema bypass the Go types, so that unknown fields survive.
func (h handler) convert(raw []byte, wanted string) ([]byte, error) {
	have := metav1.TypeMeta{}
	if err := json.Unmarshal(raw, &have); err != nil {
		return nil, fmt.Errorf("decode apiVersion and kind: %w", err)
	}
	if have.APIVersion == wanted {
		return raw, nil
	}
	to, err := schema.ParseGroupVersion(wanted)
	if err != nil {
		return nil, fmt.Errorf("wanted version: %w", err)
	}
	from := have.GroupVersionKind()
	k, known := h.kinds[from.GroupKind()]
	convert := k.up
	if from.Version == "v1beta1" {
		convert = k.down
	}
	// The versions must be v1alpha1 and v1beta1, in either direction.
	between := []string{from.Version, to.Version}
	slices.Sort(between)
	if !known || from.Group != to.Group || !slices.Equal(between, []string{"v1alpha1", "v1beta1"}) {
		return nil, fmt.Errorf("cannot convert %s to %s", from, wanted)
	}
	rest, opaque, err := takeOpaque(raw, k.opaque)
	if err != nil {
		return nil, err
	}
	data, err := convert(rest, metav1.TypeMeta{APIVersion: wanted, Kind: from.Kind})
	if err != nil {
		return nil, err
	}
	return putOpaque(data, k.opaque, opaque)
}

package containerrestart

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// PatchType is the type of all patches of requests.
const PatchType = types.MergePatchType

// Write is a change of a request's status.
type Write struct {
	// Status as it is to be.
	Status appsv1beta1.ContainerRecreateRequestStatus

	request *request
	late    bool
}

// writeOf is the write of a status; nil when the request has it already.
func writeOf(r *request, s appsv1beta1.ContainerRecreateRequestStatus) *Write {
	if equality.Semantic.DeepEqual(r.Status, s) {
		return nil
	}
	return &Write{Status: s, request: r}
}

// Patch is the body, of PatchType, for the status of the request that was given, which must not have been changed since.
// The API server refuses it, as a conflict, when somebody else has written the request meanwhile: look again then. Only
// the result of a kill that outlived its request is written whatever happened.
func (w *Write) Patch() ([]byte, error) {
	from, err := fieldsOf(w.request.Status)
	if err != nil {
		return nil, err
	}
	to, err := fieldsOf(w.Status)
	if err != nil {
		return nil, err
	}
	status := map[string]any{}
	for key, value := range to {
		if !bytes.Equal(value, from[key]) {
			status[key] = value
		}
	}
	for key := range from {
		if _, ok := to[key]; !ok {
			status[key] = nil
		}
	}
	metadata := map[string]any{"uid": w.request.UID}
	if !w.late {
		metadata["resourceVersion"] = w.request.ResourceVersion
	}
	return json.Marshal(map[string]any{"metadata": metadata, "status": status})
}

func fieldsOf(s appsv1beta1.ContainerRecreateRequestStatus) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("decode status: %w", err)
	}
	return fields, nil
}

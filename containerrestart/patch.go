package containerrestart

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/write"
)

// StatusPatch is the body of a write of a request's status, which must not have been changed since the plan. The API
// server refuses the write as outdated when another writer changed the request meanwhile. The result of a kill that
// outlived its request is written in any case.
type StatusPatch struct {
	// Status as it is to be.
	Status appsv1beta1.ContainerRecreateRequestStatus

	request *request
	// late is the result of a kill that outlived its request.
	late bool
}

// writeOf returns the write of a status; nil when the request has it already. A late one is written whatever happened
// meanwhile.
func writeOf(r *request, s appsv1beta1.ContainerRecreateRequestStatus, late bool) *write.Write {
	if equality.Semantic.DeepEqual(r.Status, s) {
		return nil
	}
	return &write.Write{
		Verb: write.Patch, Object: r, Subresource: write.Status, Type: types.MergePatchType,
		Body: StatusPatch{Status: s, request: r, late: late},
	}
}

// Data returns the bytes of a merge patch.
func (p StatusPatch) Data() ([]byte, error) {
	from, err := fieldsOf(p.request.Status)
	if err != nil {
		return nil, err
	}
	to, err := fieldsOf(p.Status)
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
	metadata := map[string]any{"uid": p.request.UID}
	if !p.late {
		metadata["resourceVersion"] = p.request.ResourceVersion
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

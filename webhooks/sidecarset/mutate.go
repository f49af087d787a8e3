package sidecarset

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/write"
)

// bounded are the fields of a spec that containers are in.
func bounded() []string { return []string{"containers", "initContainers", "volumes"} }

// Mutate answers with the defaults that the object lacks, and with its hashes.
func (w *Webhooks) Mutate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if answer := review.Oversized(req, bounded()...); answer != nil {
		return *answer
	}
	version, err := review.VersionOf(req, resource)
	if err != nil {
		return review.BadRequest(err)
	}
	sent, err := review.Decode(req.Object.Raw)
	if err != nil {
		return review.BadRequest(err)
	}
	if _, err := readTyped(version, req.Object.Raw); err != nil {
		// The schema comes after this webhook and names the fields of a wrong type; what it does not describe, the webhook
		// that validates refuses.
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	patch, err := w.fillParts(ctx, sent, storedContent(req))
	if err != nil {
		return review.Undecided(err)
	}
	more, err := complete(version, sent)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review.Patched(append(patch, more...))
}

// storedContent is nil where nothing is stored, or nothing that can be read.
func storedContent(req admission.Request) content {
	if req.Operation != admissionv1.Update {
		return nil
	}
	c, err := review.Decode(req.OldObject.Raw)
	if err != nil {
		return nil
	}
	return c
}

// complete returns the defaults of the set itself, and the hashes, which are those of a set that has all its defaults.
func complete(version review.Version, sent map[string]any) ([]write.Op, error) {
	raw, err := json.Marshal(sent)
	if err != nil {
		return nil, fmt.Errorf("encode set: %w", err)
	}
	before, err := readTyped(version, raw)
	if err != nil {
		return nil, err
	}
	after, ok := before.DeepCopyObject().(typed)
	if !ok {
		return nil, fmt.Errorf("the copy of a %T is none", before)
	}
	after.Default()
	hub, err := hubOf(after)
	if err != nil {
		return nil, err
	}
	annotations := after.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[kruise.SidecarSetHashKey], err = sidecar.Hash(hub); err != nil {
		return nil, fmt.Errorf("hash set: %w", err)
	}
	if annotations[kruise.SidecarSetHashWithoutImageKey], err = sidecar.HashWithoutImage(hub); err != nil {
		return nil, fmt.Errorf("hash set: %w", err)
	}
	after.SetAnnotations(annotations)
	return review.Changes(sent, before, after)
}

package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/write"
)

// ErrChanged is the error of a CRD that changed during the migration of its objects. Some of them may have been
// written in another version.
var ErrChanged = errors.New("the CRD has changed meanwhile")

// VersionError is the error of a CRD whose storage version is not that of its target.
type VersionError struct {
	// Have is the storage version, Want that of the target.
	Have, Want string
}

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the storage version is %s, want %s: apply the CRD first", e.Have, e.Want)
}

// Plan is what a migration does with a CRD.
type Plan struct {
	// Stored are the versions in which objects may be stored.
	Stored []string
	// Resource has the storage version.
	Resource schema.GroupVersionResource
	// Subresources of the patches: the status, if there is one.
	Subresources []string

	of *definition
}

// Decide returns the plan for a CRD. Its objects are to be stored in the wanted version.
func Decide(crd *apiextensionsv1.CustomResourceDefinition, want string) (Plan, error) {
	p := Plan{Stored: slices.Clone(crd.Status.StoredVersions), of: crd}
	p.Resource = schema.GroupVersionResource{Group: crd.Spec.Group, Version: want, Resource: crd.Spec.Names.Plural}
	for _, v := range crd.Spec.Versions {
		if v.Storage && v.Name != want {
			return p, &VersionError{Have: v.Name, Want: want}
		}
		if v.Storage && v.Subresources != nil && v.Subresources.Status != nil {
			p.Subresources = []string{"status"}
		}
	}
	return p, nil
}

// Needed reports whether objects may be stored in another version.
func (p Plan) Needed() bool {
	return slices.ContainsFunc(p.Stored, func(version string) bool { return version != p.Resource.Version })
}

// Prune returns the patch that removes all versions but the storage version from the status of the CRD, as it is after
// the objects were rewritten. The patch fails if the CRD is another one then.
func (p Plan) Prune(now *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	if now.UID != p.of.UID || now.Generation != p.of.Generation {
		return nil, ErrChanged
	}
	type metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	}
	type status struct {
		StoredVersions []string `json:"storedVersions"`
	}
	patch, err := json.Marshal(struct {
		Metadata metadata `json:"metadata"`
		Status   status   `json:"status"`
	}{
		metadata{UID: string(now.UID), ResourceVersion: now.ResourceVersion},
		status{StoredVersions: []string{p.Resource.Version}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return patch, nil
}

// rewritten reports whether an object is stored in the storage version after the answer to its patch, or is gone. The
// API server repeats a patch that conflicts with another write, and reports a conflict only if other writers were
// faster each time. What they wrote is stored in the storage version.
func rewritten(err error) bool {
	return err == nil || write.IsOutdated(err) && !apierrors.IsInvalid(err)
}

// final reports whether the same request fails again.
func final(err error) bool {
	return write.IsRefused(err) || write.IsFinal(err)
}

// next returns the token with which a list continues after an error. The API server offers one where the token has
// expired: what was created or written since then is stored in the storage version.
func next(err error) (token string, ok bool) {
	var answer apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &answer) {
		return "", false
	}
	token = answer.Status().Continue
	return token, token != ""
}

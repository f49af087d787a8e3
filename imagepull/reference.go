package imagepull

import (
	_ "crypto/sha256" // a digest is only parsed where its algorithm is linked in
	_ "crypto/sha512" // sha384 too
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Reference is one image of one repository, as NodeImages name it.
type Reference struct {
	// Name is the repository in its familiar form: nginx, team/app, registry.example.com:5000/app.
	Name string
	// Tag is a tag, or a digest such as sha256:0123.
	Tag string
}

// Parse reads a reference the way Docker does: nginx is docker.io/library/nginx:latest. Of a tag and a digest the
// digest counts. Capital letters are refused, unless they are in a registry that has a dot or a port to be known by.
func Parse(image string) (Reference, error) {
	first, _, more := strings.Cut(image, "/")
	if more && !strings.ContainsAny(first, ".:") && strings.ToLower(first) != first {
		return Reference{}, fmt.Errorf("image %q: the name of a repository has no capital letters", image)
	}
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return Reference{}, fmt.Errorf("image %q: %w", image, err)
	}
	r := Reference{Name: reference.FamiliarName(named)}
	switch v := named.(type) {
	case reference.Digested:
		r.Tag = v.Digest().String()
	case reference.Tagged:
		r.Tag = v.Tag()
	}
	return r, nil
}

// String is what a container runtime pulls: name:tag, or name@digest.
func (r Reference) String() string {
	if r.Digested() {
		return r.Name + "@" + r.Tag
	}
	return r.Name + ":" + r.Tag
}

// Digested says whether the tag is a digest. A tag cannot hold a colon.
func (r Reference) Digested() bool { return strings.Contains(r.Tag, ":") }

// Repository is the full name of the repository, by which credentials are looked up. What is no name is returned as it
// is.
func (r Reference) Repository() string {
	named, err := reference.ParseNormalizedNamed(r.Name)
	if err != nil {
		return r.Name
	}
	return named.Name()
}

// Among says whether the image is one of those that a runtime lists, by its tags or its digests, however the runtime
// writes them. What cannot be read, such as <none>:<none>, is no image.
func (r Reference) Among(listed ...string) bool {
	want, err := Parse(r.String())
	if err != nil {
		return false
	}
	for _, text := range listed {
		if have, err := Parse(text); err == nil && have == want {
			return true
		}
	}
	return false
}

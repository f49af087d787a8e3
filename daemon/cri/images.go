package cri

import (
	"context"

	"google.golang.org/grpc"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Image is one that the node has.
type Image struct {
	// ID is the digest of its configuration.
	ID string
	// Tags and Digests are the references that lead to it, as the runtime spells them: docker.io/library/nginx:1.27.
	Tags, Digests []string
}

// Images lists all images. To look for one, call Image: it costs the runtime much less.
func (r *Runtime) Images(ctx context.Context) ([]Image, error) {
	listed, err := call(ctx, r, operation{verb: "list images"},
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.ListImagesResponse, error) {
			return r.images.ListImages(ctx, &criv1.ListImagesRequest{}, o...)
		})
	if err != nil {
		return nil, err
	}
	images := make([]Image, 0, len(listed.GetImages()))
	for _, i := range listed.GetImages() {
		images = append(images, imageOf(i))
	}
	return images, nil
}

// Image returns the image that a reference (name:tag, name@digest, or an ID) leads to, or ErrNotFound.
func (r *Runtime) Image(ctx context.Context, reference string) (Image, error) {
	asking := operation{verb: "find image", object: reference}
	s, err := call(ctx, r, asking, func(ctx context.Context, o ...grpc.CallOption) (*criv1.ImageStatusResponse, error) {
		return r.images.ImageStatus(ctx, &criv1.ImageStatusRequest{Image: &criv1.ImageSpec{Image: reference}}, o...)
	})
	if err != nil {
		return Image{}, err
	}
	if s.GetImage() == nil {
		return Image{}, &failure{what: asking.String(), is: ErrNotFound}
	}
	return imageOf(s.GetImage()), nil
}

func imageOf(i *criv1.Image) Image {
	return Image{ID: i.GetId(), Tags: i.GetRepoTags(), Digests: i.GetRepoDigests()}
}

// Credentials for a registry: a name and a password, or one of the tokens. The zero value is anonymous. Formatting
// prints no secrets.
type Credentials struct {
	Username string
	Password string `json:"-"`
	// IdentityToken gets a token from the registry, RegistryToken is one.
	IdentityToken string `json:"-"`
	RegistryToken string `json:"-"`
}

// String names the user, and nothing secret.
func (c Credentials) String() string {
	if c == (Credentials{}) {
		return "anonymous"
	}
	return "credentials of " + c.Username
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

func (c Credentials) config() *criv1.AuthConfig {
	if c == (Credentials{}) {
		return nil
	}
	return &criv1.AuthConfig{
		Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
	}
}

// SandboxConfig names the pod for which a runtime pulls an image. Plug-ins of runtimes read it.
type SandboxConfig struct {
	Labels, Annotations map[string]string
}

// Pull pulls an image, also if the node has it, and returns what a pod's status calls its imageID. It lasts as long as
// the context: when that ends, the runtime stops pulling. A reference is name:tag or name@digest.
func (r *Runtime) Pull(ctx context.Context, reference string, c Credentials, s SandboxConfig) (string, error) {
	pulling := operation{verb: "pull image", object: reference, endless: true, registry: true}
	request := &criv1.PullImageRequest{
		Image: &criv1.ImageSpec{Image: reference}, Auth: c.config(),
		// Never nil, which runtimes do not expect.
		SandboxConfig: &criv1.PodSandboxConfig{Labels: s.Labels, Annotations: s.Annotations},
	}
	pulled, err := call(ctx, r, pulling,
		func(ctx context.Context, o ...grpc.CallOption) (*criv1.PullImageResponse, error) {
			return r.images.PullImage(ctx, request, o...)
		})
	return pulled.GetImageRef(), err
}

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
)

// Spec says what an image is.
type Spec struct {
	// Name is what a pod spec calls the image, with or without registry, with a tag.
	Name string
	// Env is added to a PATH and to KRUISEKIT_IMAGE, which is the name: so each name is an image of its own.
	Env []string
	// Entrypoint and Cmd are what runs. Without both it is a process that ends at once on a signal and that serves
	// HTTP on port 80 where the name contains "nginx".
	Entrypoint, Cmd []string
	// Files are added by their paths, all executable.
	Files map[string][]byte
	// Labels of the image.
	Labels map[string]string
	// Scratch leaves busybox out.
	Scratch bool
}

// Program is an image of one statically linked program and nothing else.
func Program(name string, content []byte) Spec {
	path := "/" + name
	return Spec{Scratch: true, Files: map[string][]byte{path: content}, Entrypoint: []string{path}}
}

// Image is what was pushed.
type Image struct {
	// Name as in the Spec.
	Name string
	// Digest of the manifest: what stands after the @ of a reference, and in a container's imageID.
	Digest string
	// ID is the digest of the configuration, which runtimes call the ID of an image.
	ID string
}

// Pusher pushes images to one registry.
type Pusher struct {
	registry string
	base     []byte
}

// NewPusher returns a Pusher to the registry at the given URL. busybox is the path of a statically linked busybox.
func NewPusher(ctx context.Context, registry, busybox string) (*Pusher, error) {
	base, err := busyboxLayer(ctx, busybox)
	if err != nil {
		return nil, err
	}
	return &Pusher{registry: strings.TrimSuffix(registry, "/"), base: base}, nil
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

func describe(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(content)}
}

// Push makes the image and pushes it.
func (p *Pusher) Push(ctx context.Context, s Spec) (Image, error) {
	repository, tag := split(s.Name)
	var layers [][]byte
	if !s.Scratch {
		layers = append(layers, p.base)
	}
	if len(s.Files) > 0 {
		files, err := filesLayer(s.Files)
		if err != nil {
			return Image{}, err
		}
		layers = append(layers, files)
	}
	manifest := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}{SchemaVersion: 2, MediaType: manifestType}
	for _, content := range layers {
		manifest.Layers = append(manifest.Layers, describe(layerType, content))
	}
	config, err := s.config(manifest.Layers)
	if err != nil {
		return Image{}, err
	}
	manifest.Config = describe(configType, config)
	content, err := json.Marshal(manifest)
	if err != nil {
		return Image{}, fmt.Errorf("make manifest of %s: %w", s.Name, err)
	}
	for i, blob := range append(layers, config) {
		digest := append(manifest.Layers, manifest.Config)[i].Digest
		if err := p.putBlob(ctx, repository, digest, blob); err != nil {
			return Image{}, err
		}
	}
	if err := p.putManifest(ctx, repository, tag, content); err != nil {
		return Image{}, err
	}
	return Image{Name: s.Name, Digest: describe(manifestType, content).Digest, ID: manifest.Config.Digest}, nil
}

// config is the image's configuration. An uncompressed layer's digest is that of its content, which the root file
// system is made of.
func (s Spec) config(layers []descriptor) ([]byte, error) {
	if len(s.Entrypoint) == 0 && len(s.Cmd) == 0 {
		s.Cmd = []string{"sh", "-c", serve(s.Name) + "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"}
	}
	diffs := make([]string, 0, len(layers))
	for _, l := range layers {
		diffs = append(diffs, l.Digest)
	}
	config := map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{
			"Env":        append([]string{"PATH=/bin:/usr/sbin:/usr/bin:/sbin", "KRUISEKIT_IMAGE=" + s.Name}, s.Env...),
			"Entrypoint": s.Entrypoint, "Cmd": s.Cmd, "Labels": s.Labels, "WorkingDir": "/",
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	}
	content, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("make configuration of %s: %w", s.Name, err)
	}
	return content, nil
}

func serve(name string) string {
	if strings.Contains(name, "nginx") {
		return "httpd -p 80 -h /usr/share/nginx/html; "
	}
	return ""
}

// split returns the repository, as runtimes ask a mirror for it, and the tag.
func split(name string) (repository, tag string) {
	first, rest, found := strings.Cut(name, "/")
	switch {
	case !found:
		repository = "library/" + name
	case first == "docker.io" && !strings.Contains(rest, "/"):
		repository = "library/" + rest
	case strings.ContainsAny(first, ".:") || first == "localhost":
		repository = rest
	default:
		repository = name
	}
	if i := strings.LastIndex(repository, ":"); i >= 0 {
		return repository[:i], repository[i+1:]
	}
	return repository, "latest"
}

// Command images builds the images of the manager and of the node daemon by ko, without Docker, and pushes them to a
// registry or writes them as an OCI layout.
//
// Each image has one file, the static program, and nothing below it: no base image is fetched. The same commit, version
// and release of Go give the same digests everywhere.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/ko/pkg/build"
	"github.com/google/ko/pkg/publish"
)

const module = "github.com/kruisekit/kruisekit"

// users of the programs: the daemon is root, because the sockets of container runtimes are root's.
var users = map[string]string{"kruise-manager": "65534:65534", "kruise-daemon": "0:0"}

type options struct {
	root, version, registry, layout, sboms, tags, platforms string
	insecure                                                bool
	programs                                                []string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "root of the module")
	flag.StringVar(&o.version, "version", "devel", "version of the programs, such as v0.1.0; also the tag without -tags")
	flag.StringVar(&o.tags, "tags", "", "tags to push, separated by commas")
	flag.StringVar(&o.registry, "registry", "", "registry and path to push to, such as registry.example.com/kruisekit")
	flag.StringVar(&o.layout, "layout", "", "directory for an OCI layout of each image, in place of a registry")
	flag.StringVar(&o.sboms, "sboms", "", "directory for the SBOMs, which are also pushed beside the images")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "platforms of the images")
	flag.BoolVar(&o.insecure, "insecure", false, "push over plain HTTP")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: images [flags] kruise-manager|kruise-daemon...\n\n"+
			"It prints the reference of each image, by digest. SOURCE_DATE_EPOCH is the time of the images.")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.programs = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if len(o.programs) == 0 || (o.registry == "") == (o.layout == "") {
		return errors.New("want programs, and either -registry or -layout")
	}
	created, err := epoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	for _, program := range o.programs {
		user, known := users[program]
		if !known {
			return fmt.Errorf("%s is no program of ours", program)
		}
		result, err := o.build(ctx, program, user, created)
		if err != nil {
			return fmt.Errorf("build %s: %w", program, err)
		}
		reference, err := o.publish(ctx, program, result)
		if err != nil {
			return fmt.Errorf("publish %s: %w", program, err)
		}
		fmt.Fprintln(out, reference)
	}
	return nil
}

func epoch(seconds string) (v1.Time, error) {
	if seconds == "" {
		return v1.Time{Time: time.Unix(0, 0).UTC()}, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return v1.Time{}, fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	return v1.Time{Time: time.Unix(n, 0).UTC()}, nil
}

func (o options) build(ctx context.Context, program, user string, created v1.Time) (build.Result, error) {
	platforms := strings.Split(o.platforms, ",")
	of := module + "/examples/" + program
	builder, err := build.NewGo(ctx, o.root,
		build.WithPlatforms(platforms...),
		build.WithBaseImages(func(context.Context, string) (name.Reference, build.Result, error) {
			return nothing(platforms)
		}),
		build.WithConfig(map[string]build.Config{of: {
			ID: program, Dir: o.root, Main: "./examples/" + program,
			// Without grpcnotrace, grpc brings templates along, and the linker can leave nothing out.
			Flags:   build.FlagArray{"-modfile=programs.mod", "-tags=grpcnotrace"},
			Ldflags: build.StringArray{"-s", "-w", "-X=main.version=" + o.version},
			// What the caller has set must not change the digest. Version control is left out: -X says the version.
			Env: []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"},
		}}),
		build.WithTrimpath(true),
		build.WithCreationTime(created),
		build.WithUser(user),
		build.WithSPDX(o.version),
		build.WithSBOMDir(o.sboms),
		build.WithJobs(1),
		build.WithLabel("org.opencontainers.image.source", "https://"+module),
		build.WithLabel("org.opencontainers.image.version", o.version),
		build.WithLabel("org.opencontainers.image.licenses", "Apache-2.0"),
	)
	if err != nil {
		return nil, err
	}
	return builder.Build(ctx, build.StrictScheme+of)
}

// nothing is a base image without a file, for each platform.
func nothing(platforms []string) (name.Reference, build.Result, error) {
	reference, err := name.ParseReference("scratch")
	if err != nil {
		return nil, nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, nil, err
		}
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		image, err = mutate.ConfigFile(image, &v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
			RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		})
		if err != nil {
			return nil, nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: platform},
		})
	}
	return reference, index, nil
}

func (o options) publish(ctx context.Context, program string, result build.Result) (string, error) {
	var to publish.Interface = publish.NewLayout(path.Join(o.layout, program))
	if o.registry != "" {
		tags := []string{o.version}
		if o.tags != "" {
			tags = strings.Split(o.tags, ",")
		}
		options := []publish.Option{
			publish.WithTags(tags), publish.WithUserAgent("kruisekit-images"),
			publish.WithNamer(func(registry, importPath string) string { return path.Join(registry, path.Base(importPath)) }),
		}
		if o.insecure {
			options = append(options, publish.Insecure(true), publish.WithTransport(http.DefaultTransport))
		}
		var err error
		if to, err = publish.NewDefault(o.registry, options...); err != nil {
			return "", err
		}
	}
	reference, err := to.Publish(ctx, result, build.StrictScheme+module+"/examples/"+program)
	if err != nil {
		return "", err
	}
	if o.registry != "" {
		return reference.String(), to.Close()
	}
	digest, err := result.Digest()
	if err != nil {
		return "", err
	}
	return program + "@" + digest.String(), to.Close()
}

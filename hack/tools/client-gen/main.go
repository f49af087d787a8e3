// Command client-gen generates the module of clients: apply configurations, clientset, listers and informers. It reads
// the API packages once, where the four generators of Kubernetes read them once each.
//
//	client-gen DIRECTORY
//
// It runs at the root of the repository, whose API packages it reads.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	applyargs "k8s.io/code-generator/cmd/applyconfiguration-gen/args"
	applygenerators "k8s.io/code-generator/cmd/applyconfiguration-gen/generators"
	clientargs "k8s.io/code-generator/cmd/client-gen/args"
	clientgenerators "k8s.io/code-generator/cmd/client-gen/generators"
	clienttypes "k8s.io/code-generator/cmd/client-gen/types"
	informerargs "k8s.io/code-generator/cmd/informer-gen/args"
	informergenerators "k8s.io/code-generator/cmd/informer-gen/generators"
	listerargs "k8s.io/code-generator/cmd/lister-gen/args"
	listergenerators "k8s.io/code-generator/cmd/lister-gen/generators"
	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/generator"
	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/parser"
	gengotypes "k8s.io/gengo/v2/types"
)

const (
	module  = "github.com/kruisekit/kruisekit"
	clients = module + "/api/client"
	header  = "hack/boilerplate.go.txt"
)

// step is one generator.
type step struct {
	names  namer.NameSystems
	order  string
	target func(*generator.Context) []generator.Target
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client-gen DIRECTORY")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(into string) error {
	groups := []clienttypes.GroupVersions{group("apps"), group("policy")}
	var packages []string
	for _, g := range groups {
		for _, v := range g.Versions {
			packages = append(packages, v.Package)
		}
	}
	p := parser.NewWithOptions(parser.Options{BuildTags: []string{gengo.StdBuildTag}})
	if err := p.LoadPackages(packages...); err != nil {
		return fmt.Errorf("read %v: %w", packages, err)
	}
	read, err := generator.NewContext(p, nil, "")
	if err != nil {
		return fmt.Errorf("read %v: %w", packages, err)
	}
	for _, s := range []step{applyConfigurations(into), clientset(into, groups), listers(into), informers(into)} {
		c := *read
		c.Namers = s.names
		c.Order = (&namer.Orderer{Namer: s.names[s.order]}).OrderUniverse(c.Universe)
		if err := c.ExecuteTargets(s.target(&c)); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
	}
	return nil
}

func group(name string) clienttypes.GroupVersions {
	g := clienttypes.GroupVersions{PackageName: name, Group: clienttypes.Group(name)}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		g.Versions = append(g.Versions, clienttypes.PackageVersion{
			Version: clienttypes.Version(version), Package: module + "/api/" + name + "/" + version,
		})
	}
	return g
}

func applyConfigurations(into string) step {
	a := applyargs.New()
	a.OutputDir, a.OutputPkg = filepath.Join(into, "applyconfiguration"), clients+"/applyconfiguration"
	a.GoHeaderFile = header
	// What an apply of a plain struct would own without a value, such as the resources of a container.
	for _, name := range []string{
		"Container", "ContainerPort", "ContainerResizePolicy", "ContainerRestartRule", "EnvFromSource", "EnvVar",
		"EphemeralContainer", "ExecAction", "GRPCAction", "HTTPGetAction", "Lifecycle", "LocalObjectReference",
		"NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "PersistentVolumeClaim", "PodTemplateSpec",
		"PreferredSchedulingTerm", "Probe", "ProbeHandler", "ResourceRequirements", "SecurityContext", "TCPSocketAction", "Toleration",
		"Volume", "VolumeDevice", "VolumeMount",
	} {
		a.ExternalApplyConfigurations[gengotypes.Name{Package: "k8s.io/api/core/v1", Name: name}] = "k8s.io/client-go/applyconfigurations/core/v1"
	}
	for _, name := range []string{"DeploymentSpec", "StatefulSetSpec", "DaemonSetCondition", "StatefulSetCondition"} {
		a.ExternalApplyConfigurations[gengotypes.Name{Package: "k8s.io/api/apps/v1", Name: name}] = "k8s.io/client-go/applyconfigurations/apps/v1"
	}
	a.ExternalApplyConfigurations[gengotypes.Name{Package: "k8s.io/api/batch/v1", Name: "JobTemplateSpec"}] = "k8s.io/client-go/applyconfigurations/batch/v1"
	return step{
		applygenerators.NameSystems(), applygenerators.DefaultNameSystem(),
		func(c *generator.Context) []generator.Target { return applygenerators.GetTargets(c, a) },
	}
}

func clientset(into string, groups []clienttypes.GroupVersions) step {
	a := clientargs.New()
	a.OutputDir, a.OutputPkg = filepath.Join(into, "clientset"), clients+"/clientset"
	a.GoHeaderFile, a.ClientsetName, a.Groups = header, "versioned", groups
	a.ApplyConfigurationPackage = clients + "/applyconfiguration"
	return step{
		clientgenerators.NameSystems(nil), clientgenerators.DefaultNameSystem(),
		func(c *generator.Context) []generator.Target { return clientgenerators.GetTargets(c, a) },
	}
}

func listers(into string) step {
	a := listerargs.New()
	a.OutputDir, a.OutputPkg, a.GoHeaderFile = filepath.Join(into, "listers"), clients+"/listers", header
	return step{
		listergenerators.NameSystems(nil), listergenerators.DefaultNameSystem(),
		func(c *generator.Context) []generator.Target { return listergenerators.GetTargets(c, a) },
	}
}

func informers(into string) step {
	a := informerargs.New()
	a.OutputDir, a.OutputPkg, a.GoHeaderFile = filepath.Join(into, "informers"), clients+"/informers", header
	a.VersionedClientSetPackage, a.ListersPackage = clients+"/clientset/versioned", clients+"/listers"
	return step{
		informergenerators.NameSystems(nil), informergenerators.DefaultNameSystem(),
		func(c *generator.Context) []generator.Target { return informergenerators.GetTargets(c, a) },
	}
}

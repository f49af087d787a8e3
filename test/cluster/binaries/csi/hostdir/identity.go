package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// identityServer says what the driver is.
type identityServer struct {
	csi.UnimplementedIdentityServer

	name string
}

func (s *identityServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.name, VendorVersion: "1"}, nil
}

func (*identityServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (*identityServer) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
				Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
			}},
		},
		{Type: &csi.PluginCapability_VolumeExpansion_{
			VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
		}},
	}}, nil
}

// registrationServer answers the kubelet's plugin watcher.
type registrationServer struct {
	registration.UnimplementedRegistrationServer

	name, socket string
}

func (s *registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: s.name, Endpoint: s.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (*registrationServer) NotifyRegistrationStatus(
	context.Context, *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

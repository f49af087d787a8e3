package main

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// controllerServer makes, expands and deletes volumes. A node expands a volume after it.
type controllerServer struct {
	csi.UnimplementedControllerServer

	volumes store
}

func (*controllerServer) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (s *controllerServer) CreateVolume(
	_ context.Context, request *csi.CreateVolumeRequest,
) (*csi.CreateVolumeResponse, error) {
	for _, capability := range request.GetVolumeCapabilities() {
		if capability.GetBlock() != nil {
			return nil, status.Error(codes.InvalidArgument, "a directory is no block device")
		}
	}
	size, err := s.volumes.create(request.GetName(), request.GetCapacityRange().GetRequiredBytes())
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: request.GetName(), CapacityBytes: size}}, nil
}

func (s *controllerServer) DeleteVolume(
	_ context.Context, request *csi.DeleteVolumeRequest,
) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, s.volumes.remove(request.GetVolumeId())
}

func (s *controllerServer) ControllerExpandVolume(
	_ context.Context, request *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	size, err := s.volumes.read(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	size = max(size, request.GetCapacityRange().GetRequiredBytes())
	if err := write(s.volumes.size(request.GetVolumeId()), size); err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

func (s *controllerServer) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := s.volumes.read(request.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.GetVolumeCapabilities()},
	}, nil
}

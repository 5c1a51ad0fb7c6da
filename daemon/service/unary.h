#pragma once

// One override of a unary method of a service of rnicd.v1: they differ in the method's name alone.
#define RNICD_UNARY(method)                                                                                  \
  grpc::ServerUnaryReactor* method(grpc::CallbackServerContext* context, const v1::method##Request* request, \
                                   v1::method##Response* response) override;

#pragma once

// Declares the override of a unary method of a service of rnicd.v1; the signatures differ only in the method's name.
#define RNICD_UNARY(method)                                                                                  \
  grpc::ServerUnaryReactor* method(grpc::CallbackServerContext* context, const v1::method##Request* request, \
                                   v1::method##Response* response) override;

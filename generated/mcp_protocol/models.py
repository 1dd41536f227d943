"""Every type of every revision, for annotations and `isinstance`. Importing it loads them all.

A type is the union of what the revisions of this package call by its name.
"""

from __future__ import annotations

from typing import TypeAlias

from .r2024_11_05 import models as r2024_11_05
from .r2025_03_26 import models as r2025_03_26
from .r2025_06_18 import models as r2025_06_18
from .r2025_11_25 import models as r2025_11_25
from .r2026_07_28 import models as r2026_07_28

Annotated: TypeAlias = r2024_11_05.Annotated
Annotations: TypeAlias = (
    r2024_11_05.Annotations
    | r2025_03_26.Annotations
    | r2025_06_18.Annotations
    | r2025_11_25.Annotations
    | r2026_07_28.Annotations
)
AudioContent: TypeAlias = (
    r2025_03_26.AudioContent
    | r2025_06_18.AudioContent
    | r2025_11_25.AudioContent
    | r2026_07_28.AudioContent
)
BaseMetadata: TypeAlias = (
    r2025_06_18.BaseMetadata | r2025_11_25.BaseMetadata | r2026_07_28.BaseMetadata
)
BlobResourceContents: TypeAlias = (
    r2024_11_05.BlobResourceContents
    | r2025_03_26.BlobResourceContents
    | r2025_06_18.BlobResourceContents
    | r2025_11_25.BlobResourceContents
    | r2026_07_28.BlobResourceContents
)
BooleanSchema: TypeAlias = (
    r2025_06_18.BooleanSchema | r2025_11_25.BooleanSchema | r2026_07_28.BooleanSchema
)
CacheableResult: TypeAlias = r2026_07_28.CacheableResult
CallToolRequest: TypeAlias = (
    r2024_11_05.CallToolRequest
    | r2025_03_26.CallToolRequest
    | r2025_06_18.CallToolRequest
    | r2025_11_25.CallToolRequest
    | r2026_07_28.CallToolRequest
)
CallToolRequestParams: TypeAlias = (
    r2024_11_05.CallToolRequestParams
    | r2025_03_26.CallToolRequestParams
    | r2025_06_18.CallToolRequestParams
    | r2025_11_25.CallToolRequestParams
    | r2026_07_28.CallToolRequestParams
)
CallToolResult: TypeAlias = (
    r2024_11_05.CallToolResult
    | r2025_03_26.CallToolResult
    | r2025_06_18.CallToolResult
    | r2025_11_25.CallToolResult
    | r2026_07_28.CallToolResult
)
CallToolResultResponse: TypeAlias = r2026_07_28.CallToolResultResponse
CallToolResultResponseResult: TypeAlias = (
    r2025_11_25.CallToolResultResponseResult | r2026_07_28.CallToolResultResponseResult
)
CancelTaskRequest: TypeAlias = r2025_11_25.CancelTaskRequest
CancelTaskRequestParams: TypeAlias = r2025_11_25.CancelTaskRequestParams
CancelTaskResult: TypeAlias = r2025_11_25.CancelTaskResult
CancelledNotification: TypeAlias = (
    r2024_11_05.CancelledNotification
    | r2025_03_26.CancelledNotification
    | r2025_06_18.CancelledNotification
    | r2025_11_25.CancelledNotification
    | r2026_07_28.CancelledNotification
)
CancelledNotificationParams: TypeAlias = (
    r2024_11_05.CancelledNotificationParams
    | r2025_03_26.CancelledNotificationParams
    | r2025_06_18.CancelledNotificationParams
    | r2025_11_25.CancelledNotificationParams
    | r2026_07_28.CancelledNotificationParams
)
ClientCapabilities: TypeAlias = (
    r2024_11_05.ClientCapabilities
    | r2025_03_26.ClientCapabilities
    | r2025_06_18.ClientCapabilities
    | r2025_11_25.ClientCapabilities
    | r2026_07_28.ClientCapabilities
)
ClientCapabilitiesElicitation: TypeAlias = (
    r2025_11_25.ClientCapabilitiesElicitation | r2026_07_28.ClientCapabilitiesElicitation
)
ClientCapabilitiesRoots: TypeAlias = (
    r2024_11_05.ClientCapabilitiesRoots
    | r2025_03_26.ClientCapabilitiesRoots
    | r2025_06_18.ClientCapabilitiesRoots
    | r2025_11_25.ClientCapabilitiesRoots
)
ClientCapabilitiesSampling: TypeAlias = (
    r2025_11_25.ClientCapabilitiesSampling | r2026_07_28.ClientCapabilitiesSampling
)
ClientCapabilitiesTasks: TypeAlias = r2025_11_25.ClientCapabilitiesTasks
ClientCapabilitiesTasksRequests: TypeAlias = r2025_11_25.ClientCapabilitiesTasksRequests
ClientCapabilitiesTasksRequestsElicitation: TypeAlias = (
    r2025_11_25.ClientCapabilitiesTasksRequestsElicitation
)
ClientCapabilitiesTasksRequestsSampling: TypeAlias = (
    r2025_11_25.ClientCapabilitiesTasksRequestsSampling
)
ClientNotification: TypeAlias = (
    r2024_11_05.ClientNotification
    | r2025_03_26.ClientNotification
    | r2025_06_18.ClientNotification
    | r2025_11_25.ClientNotification
    | r2026_07_28.ClientNotification
)
ClientRequest: TypeAlias = (
    r2024_11_05.ClientRequest
    | r2025_03_26.ClientRequest
    | r2025_06_18.ClientRequest
    | r2025_11_25.ClientRequest
    | r2026_07_28.ClientRequest
)
ClientResult: TypeAlias = (
    r2024_11_05.ClientResult
    | r2025_03_26.ClientResult
    | r2025_06_18.ClientResult
    | r2025_11_25.ClientResult
    | r2026_07_28.ClientResult
)
CompleteRequest: TypeAlias = (
    r2024_11_05.CompleteRequest
    | r2025_03_26.CompleteRequest
    | r2025_06_18.CompleteRequest
    | r2025_11_25.CompleteRequest
    | r2026_07_28.CompleteRequest
)
CompleteRequestParams: TypeAlias = (
    r2024_11_05.CompleteRequestParams
    | r2025_03_26.CompleteRequestParams
    | r2025_06_18.CompleteRequestParams
    | r2025_11_25.CompleteRequestParams
    | r2026_07_28.CompleteRequestParams
)
CompleteRequestParamsArgument: TypeAlias = (
    r2024_11_05.CompleteRequestParamsArgument
    | r2025_03_26.CompleteRequestParamsArgument
    | r2025_06_18.CompleteRequestParamsArgument
    | r2025_11_25.CompleteRequestParamsArgument
    | r2026_07_28.CompleteRequestParamsArgument
)
CompleteRequestParamsContext: TypeAlias = (
    r2025_06_18.CompleteRequestParamsContext
    | r2025_11_25.CompleteRequestParamsContext
    | r2026_07_28.CompleteRequestParamsContext
)
CompleteRequestParamsRef: TypeAlias = (
    r2024_11_05.CompleteRequestParamsRef
    | r2025_03_26.CompleteRequestParamsRef
    | r2025_06_18.CompleteRequestParamsRef
    | r2025_11_25.CompleteRequestParamsRef
    | r2026_07_28.CompleteRequestParamsRef
)
CompleteResult: TypeAlias = (
    r2024_11_05.CompleteResult
    | r2025_03_26.CompleteResult
    | r2025_06_18.CompleteResult
    | r2025_11_25.CompleteResult
    | r2026_07_28.CompleteResult
)
CompleteResultCompletion: TypeAlias = (
    r2024_11_05.CompleteResultCompletion
    | r2025_03_26.CompleteResultCompletion
    | r2025_06_18.CompleteResultCompletion
    | r2025_11_25.CompleteResultCompletion
    | r2026_07_28.CompleteResultCompletion
)
CompleteResultResponse: TypeAlias = r2026_07_28.CompleteResultResponse
ContentBlock: TypeAlias = (
    r2024_11_05.ContentBlock
    | r2025_03_26.ContentBlock
    | r2025_06_18.ContentBlock
    | r2025_11_25.ContentBlock
    | r2026_07_28.ContentBlock
)
CreateMessageRequest: TypeAlias = (
    r2024_11_05.CreateMessageRequest
    | r2025_03_26.CreateMessageRequest
    | r2025_06_18.CreateMessageRequest
    | r2025_11_25.CreateMessageRequest
    | r2026_07_28.CreateMessageRequest
)
CreateMessageRequestParams: TypeAlias = (
    r2024_11_05.CreateMessageRequestParams
    | r2025_03_26.CreateMessageRequestParams
    | r2025_06_18.CreateMessageRequestParams
    | r2025_11_25.CreateMessageRequestParams
    | r2026_07_28.CreateMessageRequestParams
)
CreateMessageResult: TypeAlias = (
    r2024_11_05.CreateMessageResult
    | r2025_03_26.CreateMessageResult
    | r2025_06_18.CreateMessageResult
    | r2025_11_25.CreateMessageResult
    | r2026_07_28.CreateMessageResult
)
CreateMessageResultContent: TypeAlias = (
    r2024_11_05.CreateMessageResultContent
    | r2025_03_26.CreateMessageResultContent
    | r2025_06_18.CreateMessageResultContent
    | r2025_11_25.CreateMessageResultContent
    | r2026_07_28.CreateMessageResultContent
)
CreateMessageResultResponseResult: TypeAlias = r2025_11_25.CreateMessageResultResponseResult
CreateTaskResult: TypeAlias = r2025_11_25.CreateTaskResult
Cursor: TypeAlias = (
    r2024_11_05.Cursor
    | r2025_03_26.Cursor
    | r2025_06_18.Cursor
    | r2025_11_25.Cursor
    | r2026_07_28.Cursor
)
DiscoverRequest: TypeAlias = r2026_07_28.DiscoverRequest
DiscoverResult: TypeAlias = r2026_07_28.DiscoverResult
DiscoverResultResponse: TypeAlias = r2026_07_28.DiscoverResultResponse
ElicitRequest: TypeAlias = (
    r2025_06_18.ElicitRequest | r2025_11_25.ElicitRequest | r2026_07_28.ElicitRequest
)
ElicitRequestFormParams: TypeAlias = (
    r2025_11_25.ElicitRequestFormParams | r2026_07_28.ElicitRequestFormParams
)
ElicitRequestFormParamsRequestedSchema: TypeAlias = (
    r2025_11_25.ElicitRequestFormParamsRequestedSchema
    | r2026_07_28.ElicitRequestFormParamsRequestedSchema
)
ElicitRequestParams: TypeAlias = (
    r2025_06_18.ElicitRequestParams
    | r2025_11_25.ElicitRequestParams
    | r2026_07_28.ElicitRequestParams
)
ElicitRequestParamsRequestedSchema: TypeAlias = r2025_06_18.ElicitRequestParamsRequestedSchema
ElicitRequestURLParams: TypeAlias = (
    r2025_11_25.ElicitRequestURLParams | r2026_07_28.ElicitRequestURLParams
)
ElicitResult: TypeAlias = (
    r2025_06_18.ElicitResult | r2025_11_25.ElicitResult | r2026_07_28.ElicitResult
)
ElicitResultContent: TypeAlias = r2025_11_25.ElicitResultContent | r2026_07_28.ElicitResultContent
ElicitResultResponseResult: TypeAlias = r2025_11_25.ElicitResultResponseResult
ElicitationCompleteNotification: TypeAlias = r2025_11_25.ElicitationCompleteNotification
ElicitationCompleteNotificationParams: TypeAlias = r2025_11_25.ElicitationCompleteNotificationParams
EmbeddedResource: TypeAlias = (
    r2024_11_05.EmbeddedResource
    | r2025_03_26.EmbeddedResource
    | r2025_06_18.EmbeddedResource
    | r2025_11_25.EmbeddedResource
    | r2026_07_28.EmbeddedResource
)
EmbeddedResourceResource: TypeAlias = (
    r2024_11_05.EmbeddedResourceResource
    | r2025_03_26.EmbeddedResourceResource
    | r2025_06_18.EmbeddedResourceResource
    | r2025_11_25.EmbeddedResourceResource
    | r2026_07_28.EmbeddedResourceResource
)
EmptyResult: TypeAlias = (
    r2024_11_05.EmptyResult
    | r2025_03_26.EmptyResult
    | r2025_06_18.EmptyResult
    | r2025_11_25.EmptyResult
    | r2026_07_28.EmptyResult
)
EnumSchema: TypeAlias = r2025_06_18.EnumSchema | r2025_11_25.EnumSchema | r2026_07_28.EnumSchema
Error: TypeAlias = (
    r2024_11_05.Error
    | r2025_03_26.Error
    | r2025_06_18.Error
    | r2025_11_25.Error
    | r2026_07_28.Error
)
GetPromptRequest: TypeAlias = (
    r2024_11_05.GetPromptRequest
    | r2025_03_26.GetPromptRequest
    | r2025_06_18.GetPromptRequest
    | r2025_11_25.GetPromptRequest
    | r2026_07_28.GetPromptRequest
)
GetPromptRequestParams: TypeAlias = (
    r2024_11_05.GetPromptRequestParams
    | r2025_03_26.GetPromptRequestParams
    | r2025_06_18.GetPromptRequestParams
    | r2025_11_25.GetPromptRequestParams
    | r2026_07_28.GetPromptRequestParams
)
GetPromptResult: TypeAlias = (
    r2024_11_05.GetPromptResult
    | r2025_03_26.GetPromptResult
    | r2025_06_18.GetPromptResult
    | r2025_11_25.GetPromptResult
    | r2026_07_28.GetPromptResult
)
GetPromptResultResponse: TypeAlias = r2026_07_28.GetPromptResultResponse
GetPromptResultResponseResult: TypeAlias = r2026_07_28.GetPromptResultResponseResult
GetTaskPayloadRequest: TypeAlias = r2025_11_25.GetTaskPayloadRequest
GetTaskPayloadRequestParams: TypeAlias = r2025_11_25.GetTaskPayloadRequestParams
GetTaskPayloadResult: TypeAlias = r2025_11_25.GetTaskPayloadResult
GetTaskPayloadResultResponseResult: TypeAlias = r2025_11_25.GetTaskPayloadResultResponseResult
GetTaskRequest: TypeAlias = r2025_11_25.GetTaskRequest
GetTaskRequestParams: TypeAlias = r2025_11_25.GetTaskRequestParams
GetTaskResult: TypeAlias = r2025_11_25.GetTaskResult
HeaderMismatchError: TypeAlias = r2026_07_28.HeaderMismatchError
HeaderMismatchErrorError: TypeAlias = r2026_07_28.HeaderMismatchErrorError
Icon: TypeAlias = r2025_11_25.Icon | r2026_07_28.Icon
Icons: TypeAlias = r2025_11_25.Icons | r2026_07_28.Icons
ImageContent: TypeAlias = (
    r2024_11_05.ImageContent
    | r2025_03_26.ImageContent
    | r2025_06_18.ImageContent
    | r2025_11_25.ImageContent
    | r2026_07_28.ImageContent
)
Implementation: TypeAlias = (
    r2024_11_05.Implementation
    | r2025_03_26.Implementation
    | r2025_06_18.Implementation
    | r2025_11_25.Implementation
    | r2026_07_28.Implementation
)
InitializeRequest: TypeAlias = (
    r2024_11_05.InitializeRequest
    | r2025_03_26.InitializeRequest
    | r2025_06_18.InitializeRequest
    | r2025_11_25.InitializeRequest
)
InitializeRequestParams: TypeAlias = (
    r2024_11_05.InitializeRequestParams
    | r2025_03_26.InitializeRequestParams
    | r2025_06_18.InitializeRequestParams
    | r2025_11_25.InitializeRequestParams
)
InitializeResult: TypeAlias = (
    r2024_11_05.InitializeResult
    | r2025_03_26.InitializeResult
    | r2025_06_18.InitializeResult
    | r2025_11_25.InitializeResult
)
InitializedNotification: TypeAlias = (
    r2024_11_05.InitializedNotification
    | r2025_03_26.InitializedNotification
    | r2025_06_18.InitializedNotification
    | r2025_11_25.InitializedNotification
)
InputRequest: TypeAlias = r2026_07_28.InputRequest
InputRequests: TypeAlias = r2026_07_28.InputRequests
InputRequiredResult: TypeAlias = r2026_07_28.InputRequiredResult
InputResponse: TypeAlias = r2026_07_28.InputResponse
InputResponseRequestParams: TypeAlias = r2026_07_28.InputResponseRequestParams
InputResponses: TypeAlias = r2026_07_28.InputResponses
InternalError: TypeAlias = r2026_07_28.InternalError
InvalidParamsError: TypeAlias = r2026_07_28.InvalidParamsError
InvalidRequestError: TypeAlias = r2026_07_28.InvalidRequestError
JSONArray: TypeAlias = r2026_07_28.JSONArray
JSONObject: TypeAlias = r2026_07_28.JSONObject
JSONRPCBatchRequest: TypeAlias = r2025_03_26.JSONRPCBatchRequest
JSONRPCBatchRequestItem: TypeAlias = r2025_03_26.JSONRPCBatchRequestItem
JSONRPCBatchResponse: TypeAlias = r2025_03_26.JSONRPCBatchResponse
JSONRPCBatchResponseItem: TypeAlias = r2025_03_26.JSONRPCBatchResponseItem
JSONRPCError: TypeAlias = (
    r2024_11_05.JSONRPCError | r2025_03_26.JSONRPCError | r2025_06_18.JSONRPCError
)
JSONRPCErrorResponse: TypeAlias = (
    r2025_11_25.JSONRPCErrorResponse | r2026_07_28.JSONRPCErrorResponse
)
JSONRPCMessage: TypeAlias = (
    r2024_11_05.JSONRPCMessage
    | r2025_03_26.JSONRPCMessage
    | r2025_06_18.JSONRPCMessage
    | r2025_11_25.JSONRPCMessage
    | r2026_07_28.JSONRPCMessage
)
JSONRPCNotification: TypeAlias = (
    r2024_11_05.JSONRPCNotification
    | r2025_03_26.JSONRPCNotification
    | r2025_06_18.JSONRPCNotification
    | r2025_11_25.JSONRPCNotification
    | r2026_07_28.JSONRPCNotification
)
JSONRPCRequest: TypeAlias = (
    r2024_11_05.JSONRPCRequest
    | r2025_03_26.JSONRPCRequest
    | r2025_06_18.JSONRPCRequest
    | r2025_11_25.JSONRPCRequest
    | r2026_07_28.JSONRPCRequest
)
JSONRPCResponse: TypeAlias = (
    r2024_11_05.JSONRPCResponse
    | r2025_03_26.JSONRPCResponse
    | r2025_06_18.JSONRPCResponse
    | r2025_11_25.JSONRPCResponse
    | r2026_07_28.JSONRPCResponse
)
JSONRPCResultResponse: TypeAlias = (
    r2025_11_25.JSONRPCResultResponse | r2026_07_28.JSONRPCResultResponse
)
JSONValue: TypeAlias = r2026_07_28.JSONValue
LegacyTitledEnumSchema: TypeAlias = (
    r2025_11_25.LegacyTitledEnumSchema | r2026_07_28.LegacyTitledEnumSchema
)
ListPromptsRequest: TypeAlias = (
    r2024_11_05.ListPromptsRequest
    | r2025_03_26.ListPromptsRequest
    | r2025_06_18.ListPromptsRequest
    | r2025_11_25.ListPromptsRequest
    | r2026_07_28.ListPromptsRequest
)
ListPromptsResult: TypeAlias = (
    r2024_11_05.ListPromptsResult
    | r2025_03_26.ListPromptsResult
    | r2025_06_18.ListPromptsResult
    | r2025_11_25.ListPromptsResult
    | r2026_07_28.ListPromptsResult
)
ListPromptsResultResponse: TypeAlias = r2026_07_28.ListPromptsResultResponse
ListResourceTemplatesRequest: TypeAlias = (
    r2024_11_05.ListResourceTemplatesRequest
    | r2025_03_26.ListResourceTemplatesRequest
    | r2025_06_18.ListResourceTemplatesRequest
    | r2025_11_25.ListResourceTemplatesRequest
    | r2026_07_28.ListResourceTemplatesRequest
)
ListResourceTemplatesResult: TypeAlias = (
    r2024_11_05.ListResourceTemplatesResult
    | r2025_03_26.ListResourceTemplatesResult
    | r2025_06_18.ListResourceTemplatesResult
    | r2025_11_25.ListResourceTemplatesResult
    | r2026_07_28.ListResourceTemplatesResult
)
ListResourceTemplatesResultResponse: TypeAlias = r2026_07_28.ListResourceTemplatesResultResponse
ListResourcesRequest: TypeAlias = (
    r2024_11_05.ListResourcesRequest
    | r2025_03_26.ListResourcesRequest
    | r2025_06_18.ListResourcesRequest
    | r2025_11_25.ListResourcesRequest
    | r2026_07_28.ListResourcesRequest
)
ListResourcesResult: TypeAlias = (
    r2024_11_05.ListResourcesResult
    | r2025_03_26.ListResourcesResult
    | r2025_06_18.ListResourcesResult
    | r2025_11_25.ListResourcesResult
    | r2026_07_28.ListResourcesResult
)
ListResourcesResultResponse: TypeAlias = r2026_07_28.ListResourcesResultResponse
ListRootsRequest: TypeAlias = (
    r2024_11_05.ListRootsRequest
    | r2025_03_26.ListRootsRequest
    | r2025_06_18.ListRootsRequest
    | r2025_11_25.ListRootsRequest
    | r2026_07_28.ListRootsRequest
)
ListRootsRequestParams: TypeAlias = r2026_07_28.ListRootsRequestParams
ListRootsResult: TypeAlias = (
    r2024_11_05.ListRootsResult
    | r2025_03_26.ListRootsResult
    | r2025_06_18.ListRootsResult
    | r2025_11_25.ListRootsResult
    | r2026_07_28.ListRootsResult
)
ListTasksRequest: TypeAlias = r2025_11_25.ListTasksRequest
ListTasksResult: TypeAlias = r2025_11_25.ListTasksResult
ListToolsRequest: TypeAlias = (
    r2024_11_05.ListToolsRequest
    | r2025_03_26.ListToolsRequest
    | r2025_06_18.ListToolsRequest
    | r2025_11_25.ListToolsRequest
    | r2026_07_28.ListToolsRequest
)
ListToolsResult: TypeAlias = (
    r2024_11_05.ListToolsResult
    | r2025_03_26.ListToolsResult
    | r2025_06_18.ListToolsResult
    | r2025_11_25.ListToolsResult
    | r2026_07_28.ListToolsResult
)
ListToolsResultResponse: TypeAlias = r2026_07_28.ListToolsResultResponse
LoggingLevel: TypeAlias = (
    r2024_11_05.LoggingLevel
    | r2025_03_26.LoggingLevel
    | r2025_06_18.LoggingLevel
    | r2025_11_25.LoggingLevel
    | r2026_07_28.LoggingLevel
)
LoggingMessageNotification: TypeAlias = (
    r2024_11_05.LoggingMessageNotification
    | r2025_03_26.LoggingMessageNotification
    | r2025_06_18.LoggingMessageNotification
    | r2025_11_25.LoggingMessageNotification
    | r2026_07_28.LoggingMessageNotification
)
LoggingMessageNotificationParams: TypeAlias = (
    r2024_11_05.LoggingMessageNotificationParams
    | r2025_03_26.LoggingMessageNotificationParams
    | r2025_06_18.LoggingMessageNotificationParams
    | r2025_11_25.LoggingMessageNotificationParams
    | r2026_07_28.LoggingMessageNotificationParams
)
MetaObject: TypeAlias = r2026_07_28.MetaObject
MethodNotFoundError: TypeAlias = r2026_07_28.MethodNotFoundError
MissingRequiredClientCapabilityError: TypeAlias = r2026_07_28.MissingRequiredClientCapabilityError
MissingRequiredClientCapabilityErrorError: TypeAlias = (
    r2026_07_28.MissingRequiredClientCapabilityErrorError
)
MissingRequiredClientCapabilityErrorErrorData: TypeAlias = (
    r2026_07_28.MissingRequiredClientCapabilityErrorErrorData
)
ModelHint: TypeAlias = (
    r2024_11_05.ModelHint
    | r2025_03_26.ModelHint
    | r2025_06_18.ModelHint
    | r2025_11_25.ModelHint
    | r2026_07_28.ModelHint
)
ModelPreferences: TypeAlias = (
    r2024_11_05.ModelPreferences
    | r2025_03_26.ModelPreferences
    | r2025_06_18.ModelPreferences
    | r2025_11_25.ModelPreferences
    | r2026_07_28.ModelPreferences
)
MultiSelectEnumSchema: TypeAlias = (
    r2025_11_25.MultiSelectEnumSchema | r2026_07_28.MultiSelectEnumSchema
)
Notification: TypeAlias = (
    r2024_11_05.Notification
    | r2025_03_26.Notification
    | r2025_06_18.Notification
    | r2025_11_25.Notification
    | r2026_07_28.Notification
)
NotificationMetaObject: TypeAlias = r2026_07_28.NotificationMetaObject
NotificationParams: TypeAlias = (
    r2024_11_05.NotificationParams
    | r2025_03_26.NotificationParams
    | r2025_06_18.NotificationParams
    | r2025_11_25.NotificationParams
    | r2026_07_28.NotificationParams
)
NumberSchema: TypeAlias = (
    r2025_06_18.NumberSchema | r2025_11_25.NumberSchema | r2026_07_28.NumberSchema
)
PaginatedRequest: TypeAlias = (
    r2024_11_05.PaginatedRequest
    | r2025_03_26.PaginatedRequest
    | r2025_06_18.PaginatedRequest
    | r2025_11_25.PaginatedRequest
    | r2026_07_28.PaginatedRequest
)
PaginatedRequestParams: TypeAlias = (
    r2024_11_05.PaginatedRequestParams
    | r2025_03_26.PaginatedRequestParams
    | r2025_06_18.PaginatedRequestParams
    | r2025_11_25.PaginatedRequestParams
    | r2026_07_28.PaginatedRequestParams
)
PaginatedResult: TypeAlias = (
    r2024_11_05.PaginatedResult
    | r2025_03_26.PaginatedResult
    | r2025_06_18.PaginatedResult
    | r2025_11_25.PaginatedResult
    | r2026_07_28.PaginatedResult
)
ParseError: TypeAlias = r2026_07_28.ParseError
PingRequest: TypeAlias = (
    r2024_11_05.PingRequest
    | r2025_03_26.PingRequest
    | r2025_06_18.PingRequest
    | r2025_11_25.PingRequest
)
PrimitiveSchemaDefinition: TypeAlias = (
    r2025_06_18.PrimitiveSchemaDefinition
    | r2025_11_25.PrimitiveSchemaDefinition
    | r2026_07_28.PrimitiveSchemaDefinition
)
ProgressNotification: TypeAlias = (
    r2024_11_05.ProgressNotification
    | r2025_03_26.ProgressNotification
    | r2025_06_18.ProgressNotification
    | r2025_11_25.ProgressNotification
    | r2026_07_28.ProgressNotification
)
ProgressNotificationParams: TypeAlias = (
    r2024_11_05.ProgressNotificationParams
    | r2025_03_26.ProgressNotificationParams
    | r2025_06_18.ProgressNotificationParams
    | r2025_11_25.ProgressNotificationParams
    | r2026_07_28.ProgressNotificationParams
)
ProgressToken: TypeAlias = (
    r2024_11_05.ProgressToken
    | r2025_03_26.ProgressToken
    | r2025_06_18.ProgressToken
    | r2025_11_25.ProgressToken
    | r2026_07_28.ProgressToken
)
Prompt: TypeAlias = (
    r2024_11_05.Prompt
    | r2025_03_26.Prompt
    | r2025_06_18.Prompt
    | r2025_11_25.Prompt
    | r2026_07_28.Prompt
)
PromptArgument: TypeAlias = (
    r2024_11_05.PromptArgument
    | r2025_03_26.PromptArgument
    | r2025_06_18.PromptArgument
    | r2025_11_25.PromptArgument
    | r2026_07_28.PromptArgument
)
PromptListChangedNotification: TypeAlias = (
    r2024_11_05.PromptListChangedNotification
    | r2025_03_26.PromptListChangedNotification
    | r2025_06_18.PromptListChangedNotification
    | r2025_11_25.PromptListChangedNotification
    | r2026_07_28.PromptListChangedNotification
)
PromptMessage: TypeAlias = (
    r2024_11_05.PromptMessage
    | r2025_03_26.PromptMessage
    | r2025_06_18.PromptMessage
    | r2025_11_25.PromptMessage
    | r2026_07_28.PromptMessage
)
PromptReference: TypeAlias = (
    r2024_11_05.PromptReference
    | r2025_03_26.PromptReference
    | r2025_06_18.PromptReference
    | r2025_11_25.PromptReference
    | r2026_07_28.PromptReference
)
ReadResourceRequest: TypeAlias = (
    r2024_11_05.ReadResourceRequest
    | r2025_03_26.ReadResourceRequest
    | r2025_06_18.ReadResourceRequest
    | r2025_11_25.ReadResourceRequest
    | r2026_07_28.ReadResourceRequest
)
ReadResourceRequestParams: TypeAlias = (
    r2024_11_05.ReadResourceRequestParams
    | r2025_03_26.ReadResourceRequestParams
    | r2025_06_18.ReadResourceRequestParams
    | r2025_11_25.ReadResourceRequestParams
    | r2026_07_28.ReadResourceRequestParams
)
ReadResourceResult: TypeAlias = (
    r2024_11_05.ReadResourceResult
    | r2025_03_26.ReadResourceResult
    | r2025_06_18.ReadResourceResult
    | r2025_11_25.ReadResourceResult
    | r2026_07_28.ReadResourceResult
)
ReadResourceResultContents: TypeAlias = (
    r2024_11_05.ReadResourceResultContents
    | r2025_03_26.ReadResourceResultContents
    | r2025_06_18.ReadResourceResultContents
    | r2025_11_25.ReadResourceResultContents
    | r2026_07_28.ReadResourceResultContents
)
ReadResourceResultResponse: TypeAlias = r2026_07_28.ReadResourceResultResponse
ReadResourceResultResponseResult: TypeAlias = r2026_07_28.ReadResourceResultResponseResult
RelatedTaskMetadata: TypeAlias = r2025_11_25.RelatedTaskMetadata
Request: TypeAlias = (
    r2024_11_05.Request
    | r2025_03_26.Request
    | r2025_06_18.Request
    | r2025_11_25.Request
    | r2026_07_28.Request
)
RequestId: TypeAlias = (
    r2024_11_05.RequestId
    | r2025_03_26.RequestId
    | r2025_06_18.RequestId
    | r2025_11_25.RequestId
    | r2026_07_28.RequestId
)
RequestMetaObject: TypeAlias = (
    r2024_11_05.RequestMetaObject
    | r2025_03_26.RequestMetaObject
    | r2025_06_18.RequestMetaObject
    | r2025_11_25.RequestMetaObject
    | r2026_07_28.RequestMetaObject
)
RequestParams: TypeAlias = (
    r2024_11_05.RequestParams
    | r2025_03_26.RequestParams
    | r2025_06_18.RequestParams
    | r2025_11_25.RequestParams
    | r2026_07_28.RequestParams
)
Resource: TypeAlias = (
    r2024_11_05.Resource
    | r2025_03_26.Resource
    | r2025_06_18.Resource
    | r2025_11_25.Resource
    | r2026_07_28.Resource
)
ResourceContents: TypeAlias = (
    r2024_11_05.ResourceContents
    | r2025_03_26.ResourceContents
    | r2025_06_18.ResourceContents
    | r2025_11_25.ResourceContents
    | r2026_07_28.ResourceContents
)
ResourceLink: TypeAlias = (
    r2025_06_18.ResourceLink | r2025_11_25.ResourceLink | r2026_07_28.ResourceLink
)
ResourceListChangedNotification: TypeAlias = (
    r2024_11_05.ResourceListChangedNotification
    | r2025_03_26.ResourceListChangedNotification
    | r2025_06_18.ResourceListChangedNotification
    | r2025_11_25.ResourceListChangedNotification
    | r2026_07_28.ResourceListChangedNotification
)
ResourceReference: TypeAlias = r2024_11_05.ResourceReference | r2025_03_26.ResourceReference
ResourceRequestParams: TypeAlias = (
    r2025_11_25.ResourceRequestParams | r2026_07_28.ResourceRequestParams
)
ResourceTemplate: TypeAlias = (
    r2024_11_05.ResourceTemplate
    | r2025_03_26.ResourceTemplate
    | r2025_06_18.ResourceTemplate
    | r2025_11_25.ResourceTemplate
    | r2026_07_28.ResourceTemplate
)
ResourceTemplateReference: TypeAlias = (
    r2025_06_18.ResourceTemplateReference
    | r2025_11_25.ResourceTemplateReference
    | r2026_07_28.ResourceTemplateReference
)
ResourceUpdatedNotification: TypeAlias = (
    r2024_11_05.ResourceUpdatedNotification
    | r2025_03_26.ResourceUpdatedNotification
    | r2025_06_18.ResourceUpdatedNotification
    | r2025_11_25.ResourceUpdatedNotification
    | r2026_07_28.ResourceUpdatedNotification
)
ResourceUpdatedNotificationParams: TypeAlias = (
    r2024_11_05.ResourceUpdatedNotificationParams
    | r2025_03_26.ResourceUpdatedNotificationParams
    | r2025_06_18.ResourceUpdatedNotificationParams
    | r2025_11_25.ResourceUpdatedNotificationParams
    | r2026_07_28.ResourceUpdatedNotificationParams
)
Result: TypeAlias = (
    r2024_11_05.Result
    | r2025_03_26.Result
    | r2025_06_18.Result
    | r2025_11_25.Result
    | r2026_07_28.Result
)
ResultMetaObject: TypeAlias = r2026_07_28.ResultMetaObject
ResultType: TypeAlias = r2026_07_28.ResultType
Role: TypeAlias = (
    r2024_11_05.Role | r2025_03_26.Role | r2025_06_18.Role | r2025_11_25.Role | r2026_07_28.Role
)
Root: TypeAlias = (
    r2024_11_05.Root | r2025_03_26.Root | r2025_06_18.Root | r2025_11_25.Root | r2026_07_28.Root
)
RootsListChangedNotification: TypeAlias = (
    r2024_11_05.RootsListChangedNotification
    | r2025_03_26.RootsListChangedNotification
    | r2025_06_18.RootsListChangedNotification
    | r2025_11_25.RootsListChangedNotification
)
SamplingMessage: TypeAlias = (
    r2024_11_05.SamplingMessage
    | r2025_03_26.SamplingMessage
    | r2025_06_18.SamplingMessage
    | r2025_11_25.SamplingMessage
    | r2026_07_28.SamplingMessage
)
SamplingMessageContent: TypeAlias = (
    r2024_11_05.SamplingMessageContent
    | r2025_03_26.SamplingMessageContent
    | r2025_06_18.SamplingMessageContent
    | r2025_11_25.SamplingMessageContent
    | r2026_07_28.SamplingMessageContent
)
SamplingMessageContentBlock: TypeAlias = (
    r2025_11_25.SamplingMessageContentBlock | r2026_07_28.SamplingMessageContentBlock
)
ServerCapabilities: TypeAlias = (
    r2024_11_05.ServerCapabilities
    | r2025_03_26.ServerCapabilities
    | r2025_06_18.ServerCapabilities
    | r2025_11_25.ServerCapabilities
    | r2026_07_28.ServerCapabilities
)
ServerCapabilitiesPrompts: TypeAlias = (
    r2024_11_05.ServerCapabilitiesPrompts
    | r2025_03_26.ServerCapabilitiesPrompts
    | r2025_06_18.ServerCapabilitiesPrompts
    | r2025_11_25.ServerCapabilitiesPrompts
    | r2026_07_28.ServerCapabilitiesPrompts
)
ServerCapabilitiesResources: TypeAlias = (
    r2024_11_05.ServerCapabilitiesResources
    | r2025_03_26.ServerCapabilitiesResources
    | r2025_06_18.ServerCapabilitiesResources
    | r2025_11_25.ServerCapabilitiesResources
    | r2026_07_28.ServerCapabilitiesResources
)
ServerCapabilitiesTasks: TypeAlias = r2025_11_25.ServerCapabilitiesTasks
ServerCapabilitiesTasksRequests: TypeAlias = r2025_11_25.ServerCapabilitiesTasksRequests
ServerCapabilitiesTasksRequestsTools: TypeAlias = r2025_11_25.ServerCapabilitiesTasksRequestsTools
ServerCapabilitiesTools: TypeAlias = (
    r2024_11_05.ServerCapabilitiesTools
    | r2025_03_26.ServerCapabilitiesTools
    | r2025_06_18.ServerCapabilitiesTools
    | r2025_11_25.ServerCapabilitiesTools
    | r2026_07_28.ServerCapabilitiesTools
)
ServerNotification: TypeAlias = (
    r2024_11_05.ServerNotification
    | r2025_03_26.ServerNotification
    | r2025_06_18.ServerNotification
    | r2025_11_25.ServerNotification
    | r2026_07_28.ServerNotification
)
ServerRequest: TypeAlias = (
    r2024_11_05.ServerRequest
    | r2025_03_26.ServerRequest
    | r2025_06_18.ServerRequest
    | r2025_11_25.ServerRequest
)
ServerResult: TypeAlias = (
    r2024_11_05.ServerResult
    | r2025_03_26.ServerResult
    | r2025_06_18.ServerResult
    | r2025_11_25.ServerResult
    | r2026_07_28.ServerResult
)
SetLevelRequest: TypeAlias = (
    r2024_11_05.SetLevelRequest
    | r2025_03_26.SetLevelRequest
    | r2025_06_18.SetLevelRequest
    | r2025_11_25.SetLevelRequest
)
SetLevelRequestParams: TypeAlias = (
    r2024_11_05.SetLevelRequestParams
    | r2025_03_26.SetLevelRequestParams
    | r2025_06_18.SetLevelRequestParams
    | r2025_11_25.SetLevelRequestParams
)
SingleSelectEnumSchema: TypeAlias = (
    r2025_11_25.SingleSelectEnumSchema | r2026_07_28.SingleSelectEnumSchema
)
StringSchema: TypeAlias = (
    r2025_06_18.StringSchema | r2025_11_25.StringSchema | r2026_07_28.StringSchema
)
SubscribeRequest: TypeAlias = (
    r2024_11_05.SubscribeRequest
    | r2025_03_26.SubscribeRequest
    | r2025_06_18.SubscribeRequest
    | r2025_11_25.SubscribeRequest
)
SubscribeRequestParams: TypeAlias = (
    r2024_11_05.SubscribeRequestParams
    | r2025_03_26.SubscribeRequestParams
    | r2025_06_18.SubscribeRequestParams
    | r2025_11_25.SubscribeRequestParams
)
SubscriptionFilter: TypeAlias = r2026_07_28.SubscriptionFilter
SubscriptionsAcknowledgedNotification: TypeAlias = r2026_07_28.SubscriptionsAcknowledgedNotification
SubscriptionsAcknowledgedNotificationParams: TypeAlias = (
    r2026_07_28.SubscriptionsAcknowledgedNotificationParams
)
SubscriptionsListenRequest: TypeAlias = r2026_07_28.SubscriptionsListenRequest
SubscriptionsListenRequestParams: TypeAlias = r2026_07_28.SubscriptionsListenRequestParams
SubscriptionsListenResult: TypeAlias = r2026_07_28.SubscriptionsListenResult
SubscriptionsListenResultMetaObject: TypeAlias = r2026_07_28.SubscriptionsListenResultMetaObject
SubscriptionsListenResultResponse: TypeAlias = r2026_07_28.SubscriptionsListenResultResponse
Task: TypeAlias = r2025_11_25.Task
TaskAugmentedRequestParams: TypeAlias = r2025_11_25.TaskAugmentedRequestParams
TaskMetadata: TypeAlias = r2025_11_25.TaskMetadata
TaskStatus: TypeAlias = r2025_11_25.TaskStatus
TaskStatusNotification: TypeAlias = r2025_11_25.TaskStatusNotification
TaskStatusNotificationParams: TypeAlias = r2025_11_25.TaskStatusNotificationParams
TextContent: TypeAlias = (
    r2024_11_05.TextContent
    | r2025_03_26.TextContent
    | r2025_06_18.TextContent
    | r2025_11_25.TextContent
    | r2026_07_28.TextContent
)
TextResourceContents: TypeAlias = (
    r2024_11_05.TextResourceContents
    | r2025_03_26.TextResourceContents
    | r2025_06_18.TextResourceContents
    | r2025_11_25.TextResourceContents
    | r2026_07_28.TextResourceContents
)
TitledMultiSelectEnumSchema: TypeAlias = (
    r2025_11_25.TitledMultiSelectEnumSchema | r2026_07_28.TitledMultiSelectEnumSchema
)
TitledMultiSelectEnumSchemaItems: TypeAlias = (
    r2025_11_25.TitledMultiSelectEnumSchemaItems | r2026_07_28.TitledMultiSelectEnumSchemaItems
)
TitledMultiSelectEnumSchemaItemsAnyOf: TypeAlias = (
    r2025_11_25.TitledMultiSelectEnumSchemaItemsAnyOf
    | r2026_07_28.TitledMultiSelectEnumSchemaItemsAnyOf
)
TitledSingleSelectEnumSchema: TypeAlias = (
    r2025_11_25.TitledSingleSelectEnumSchema | r2026_07_28.TitledSingleSelectEnumSchema
)
TitledSingleSelectEnumSchemaOneOf: TypeAlias = (
    r2025_11_25.TitledSingleSelectEnumSchemaOneOf | r2026_07_28.TitledSingleSelectEnumSchemaOneOf
)
Tool: TypeAlias = (
    r2024_11_05.Tool | r2025_03_26.Tool | r2025_06_18.Tool | r2025_11_25.Tool | r2026_07_28.Tool
)
ToolAnnotations: TypeAlias = (
    r2025_03_26.ToolAnnotations
    | r2025_06_18.ToolAnnotations
    | r2025_11_25.ToolAnnotations
    | r2026_07_28.ToolAnnotations
)
ToolChoice: TypeAlias = r2025_11_25.ToolChoice | r2026_07_28.ToolChoice
ToolExecution: TypeAlias = r2025_11_25.ToolExecution
ToolListChangedNotification: TypeAlias = (
    r2024_11_05.ToolListChangedNotification
    | r2025_03_26.ToolListChangedNotification
    | r2025_06_18.ToolListChangedNotification
    | r2025_11_25.ToolListChangedNotification
    | r2026_07_28.ToolListChangedNotification
)
ToolResultContent: TypeAlias = r2025_11_25.ToolResultContent | r2026_07_28.ToolResultContent
ToolUseContent: TypeAlias = r2025_11_25.ToolUseContent | r2026_07_28.ToolUseContent
URLElicitationRequiredError: TypeAlias = r2025_11_25.URLElicitationRequiredError
URLElicitationRequiredErrorError: TypeAlias = r2025_11_25.URLElicitationRequiredErrorError
URLElicitationRequiredErrorErrorData: TypeAlias = r2025_11_25.URLElicitationRequiredErrorErrorData
UnsubscribeRequest: TypeAlias = (
    r2024_11_05.UnsubscribeRequest
    | r2025_03_26.UnsubscribeRequest
    | r2025_06_18.UnsubscribeRequest
    | r2025_11_25.UnsubscribeRequest
)
UnsubscribeRequestParams: TypeAlias = (
    r2024_11_05.UnsubscribeRequestParams
    | r2025_03_26.UnsubscribeRequestParams
    | r2025_06_18.UnsubscribeRequestParams
    | r2025_11_25.UnsubscribeRequestParams
)
UnsupportedProtocolVersionError: TypeAlias = r2026_07_28.UnsupportedProtocolVersionError
UnsupportedProtocolVersionErrorError: TypeAlias = r2026_07_28.UnsupportedProtocolVersionErrorError
UnsupportedProtocolVersionErrorErrorData: TypeAlias = (
    r2026_07_28.UnsupportedProtocolVersionErrorErrorData
)
UntitledMultiSelectEnumSchema: TypeAlias = (
    r2025_11_25.UntitledMultiSelectEnumSchema | r2026_07_28.UntitledMultiSelectEnumSchema
)
UntitledMultiSelectEnumSchemaItems: TypeAlias = (
    r2025_11_25.UntitledMultiSelectEnumSchemaItems | r2026_07_28.UntitledMultiSelectEnumSchemaItems
)
UntitledSingleSelectEnumSchema: TypeAlias = (
    r2025_11_25.UntitledSingleSelectEnumSchema | r2026_07_28.UntitledSingleSelectEnumSchema
)

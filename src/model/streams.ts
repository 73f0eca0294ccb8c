export const STREAM_NAMES = ['clicks', 'leads', 'sales'] as const;
export type StreamName = (typeof STREAM_NAMES)[number];

"""Queries of pages, lists and statistics, which read several tables."""
